from setuptools import Extension, find_packages, setup

setup(
    name="tinyserve",
    version="0.1.0",
    description="A stand-in for an inference engine",
    packages=find_packages(include=["tinyserve", "tinyserve.*"]),
    ext_modules=[Extension("tinyserve._kernels", ["csrc/kernels.c"], extra_compile_args=["-O2"])],
    python_requires=">=3.9",
)
