"""What is fitted: recipes, other libraries' models, ranges of parameters, names and scores."""
