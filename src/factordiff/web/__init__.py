"""The playground: a page where people watch experts being composed, and the server behind it."""
