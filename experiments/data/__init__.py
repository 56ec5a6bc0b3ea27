"""Tables, published runs and made-up problems, and the folds that models are fitted on."""
