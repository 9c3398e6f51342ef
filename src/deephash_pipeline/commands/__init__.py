"""Commands besides Kedro's, and options that Kedro's get here."""
