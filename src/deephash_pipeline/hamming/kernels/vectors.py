"""Vectors of 64-bit words in kernels: numba knows none, and what LLVM makes of loops adds in four steps, not in two."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as _utilities
from numba.extending import intrinsic

ROW_WORDS = 8
"""Words of a row: one vector of AVX-512, two of AVX2."""
# Its functions have no annotations.
cgutils: Any = _utilities
# Truth tables of vpternlog.
_SUM, _MAJORITY = 0x96, 0xE8


class Vectors:
    """Writes instructions on rows, with those of AVX-512 on three operands where the processor has them."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.builder = builder
        features = context.codegen().magic_tuple()[2]
        self.ternary = "+avx512f" in features
        self.counts = "+avx512vpopcntdq" in features
        self.words = ROW_WORDS if self.ternary else ROW_WORDS // 2
        self.type = ir.VectorType(ir.IntType(64), self.words)

    def parts(self) -> range:
        """Where in a row its vectors begin."""
        return range(0, ROW_WORDS, self.words)

    def place(self, memory: Any, row: Any, word: int) -> Any:
        """Address of a vector in memory."""
        index = self.builder.add(self.builder.mul(row, row.type(ROW_WORDS)), row.type(word))
        words = self.builder.bitcast(memory, ir.IntType(64).as_pointer())
        return self.builder.bitcast(self.builder.gep(words, [index]), self.type.as_pointer())

    def load(self, memory: Any, row: Any, word: int) -> Any:
        """A vector from memory."""
        return self.builder.load(self.place(memory, row, word), align=8)

    def load_if(self, condition: Any, memory: Any, row: Any, word: int) -> Any:
        """A vector from memory, or zeros."""
        loaded = cgutils.alloca_once_value(self.builder, self.constant(0))
        with self.builder.if_then(condition):
            self.builder.store(self.load(memory, row, word), loaded)
        return self.builder.load(loaded)

    def store(self, vector: Any, memory: Any, row: Any, word: int) -> None:
        """Write a vector to memory."""
        self.builder.store(vector, self.place(memory, row, word), align=8)

    def constant(self, word: int) -> Any:
        """A vector of equal words."""
        return self.type([word] * self.words)

    def spread(self, word: Any) -> Any:
        """A vector of a word that is known later."""
        vector = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(vector, word, ir.IntType(32)(0))
        every = ir.Constant(ir.VectorType(ir.IntType(32), self.words), [0] * self.words)
        return self.builder.shuffle_vector(first, vector, every)

    def popcount(self, vector: Any) -> Any:
        """Number of ones in each word."""
        name, kind = f"llvm.ctpop.v{self.words}i64", ir.FunctionType(self.type, [self.type])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), [vector])

    def fetch(self, memory: Any, word: Any) -> None:
        """Have a word, which need not exist, brought into the second-level cache."""
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0i8")
        place = self.builder.bitcast(self.builder.gep(memory, [word]), byte)
        self.builder.call(fetch, [place, number(0), number(2), number(1)])

    def full_add(self, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
        """Add three binary digits: the digit of the sum, and the carry."""
        builder = self.builder
        if self.ternary:
            of_three = ir.FunctionType(self.type, [self.type] * 3 + [ir.IntType(32)])
            chosen = cgutils.get_or_insert_function(builder.module, of_three, "llvm.x86.avx512.pternlog.q.512")
            total, carry = (builder.call(chosen, [a, b, c, ir.IntType(32)(table)]) for table in (_SUM, _MAJORITY))
            return total, carry
        either = builder.xor(a, b)
        return builder.xor(either, c), builder.or_(builder.and_(a, b), builder.and_(either, c))

    def majority(self, a: Any, b: Any, c: Any) -> Any:
        """Digits that two of three have."""
        return self.full_add(a, b, c)[1]


def instructions(function: Any) -> Any:
    """A function whose instructions are written as such, see `numba.extending.intrinsic`."""
    return intrinsic(function)


def pointer_to(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """Address of the first number of an array."""
    return context.make_array(array_type)(context, builder, array).data


@instructions
def fetch(_typing: Any, numbers: Any, place: Any) -> Any:
    """Have a number of an array, which need not exist, brought into the second-level cache."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        memory = pointer_to(context, builder, signature.args[0], arguments[0])
        Vectors(context, builder).fetch(memory, arguments[1])
        return context.get_dummy_value()

    return types.void(numbers, types.int64), generate
