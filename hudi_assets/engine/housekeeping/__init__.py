"""Clean, archive and savepoints."""
