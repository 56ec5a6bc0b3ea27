"""What is made of results: statistics, Markdown tables, figures and the HTML page."""
