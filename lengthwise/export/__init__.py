"""Export: models as graphs of other runtimes, machines as text and source code, folders for model hubs."""
