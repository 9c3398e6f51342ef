"""Compiles the Triton kernel for a device that need not be there: python compiled_kernel.py capability; prints PTX."""

import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from deephash_pipeline.losses.exponentiated import cuda

POINTERS = {"u": "*fp32", "labels": "*i64", "pair_weights": "*fp32", "parts": "*fp32", "sums": "*fp32"}
SIZES = dict.fromkeys(("batch", "stride", "code_length", "bands", "tiles_of_band"), "i32")
SCALES = dict.fromkeys(("exponent_scale", "cosh", "sinh"), "fp32")
CONSTANTS = {"TILE": cuda.TILE, "BITS": cuda.BITS_OF_PROGRAM}


def main(capability):
    source = ASTSource(
        fn=cuda._pairs_of_bands,
        signature=POINTERS | SIZES | SCALES | dict.fromkeys(CONSTANTS, "constexpr"),
        constexprs=CONSTANTS,
    )
    compiled = triton.compile(source, GPUTarget("cuda", int(capability), 32), {"enable_fp_fusion": True})
    sys.stdout.write(compiled.asm["ptx"])


if __name__ == "__main__":
    main(*sys.argv[1:])
