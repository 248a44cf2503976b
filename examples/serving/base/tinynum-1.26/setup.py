from setuptools import setup

setup(name="tinynum", version="1.26", packages=["tinynum"])
