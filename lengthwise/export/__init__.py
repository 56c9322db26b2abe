"""Export: models as graphs for other runtimes, machines as text and source code, folders for model hubs."""
