"""What can be wrong with the operands of a kernel."""


class KernelError(Exception):
    """Anything this package raises."""


class OperandError(KernelError, ValueError):
    """An operand that no kernel takes: the message names what was found and what was expected."""


class KernelsUnavailableError(KernelError, RuntimeError):
    """Compiled kernels were asked for and cannot run here."""
