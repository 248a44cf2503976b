from setuptools import setup

setup(name="tinyhub", version="2.0", packages=["tinyhub"])
