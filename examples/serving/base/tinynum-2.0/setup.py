from setuptools import setup

setup(name="tinynum", version="2.0", packages=["tinynum"])
