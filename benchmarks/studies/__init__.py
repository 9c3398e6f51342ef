"""Studies: questions that one measurement answers, each with its page or section; apart from timings."""
