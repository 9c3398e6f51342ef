"""Groups of files that show the same picture; which one to keep, and why.

It deletes nothing. It knows neither Kedro nor a command line.
"""
