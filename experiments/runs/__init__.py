"""How work is carried out: jobs and their result files, processes, searches, provenance."""
