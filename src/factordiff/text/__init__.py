"""Text of Python files: prose and code as two experts' territories."""
