"""Short binary codes for images, after "Deep Hashing: A Joint Approach for Image Signature Learning" (Mu & Liu).

The library packages (`images`, `networks`, `losses`, `training`, `hashing`, `retrieval`, `reports`) know no Kedro;
`pipelines` composes them.
"""

__version__ = "0.1.0"
