"""Records, statistics, verdicts, documents and charts: figures from files, nothing is run here."""
