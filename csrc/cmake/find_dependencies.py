"""Print `<folder of nvcc's wheels>;<PyTorch's include folder>` for CMake; either may be empty."""

import importlib.util
from pathlib import Path


def folder_of(package: str, *parts: str) -> str:
    """Return a folder inside an installed package, or nothing."""
    spec = importlib.util.find_spec(package)
    for location in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(location).joinpath(*parts)
        if folder.exists():
            return str(folder)
    return ""


toolkit = folder_of("nvidia", "cu13")
print(f"{toolkit if Path(toolkit, 'bin', 'nvcc').exists() else ''};{folder_of('torch', 'include')}")
