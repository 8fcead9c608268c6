"""Speech data cleaning that may be stopped at any instant."""
