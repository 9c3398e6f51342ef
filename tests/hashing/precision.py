"""Mean average precision of codes."""

from deephash_pipeline.retrieval import count_distances, pack_bits, retrieval_metrics


def mean_average_precision(hash_function, z, labels, queries):
    """Of the first rows as queries in the others, from which the hash function learns."""
    codes = pack_bits(hash_function.fit(z[queries:], labels[queries:]).transform(z))
    counted = codes[:queries], labels[:queries], codes[queries:], labels[queries:]
    return float(retrieval_metrics(count_distances(*counted, hash_function.code_length))["mean_average_precision"])
