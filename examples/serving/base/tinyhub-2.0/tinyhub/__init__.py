"""Configurations of models by name, as a hub of models would ship them. Since 2.0, quokka is among them."""


class AutoConfig:
    _configs = {}

    @classmethod
    def register(cls, name, config, exist_ok=False):
        if name in cls._configs and not exist_ok:
            raise ValueError(f"'{name}' is already used by a tinyhub config, pick another name.")
        cls._configs[name] = config

    @classmethod
    def of(cls, name, default):
        return cls._configs.get(name, default)


class QuokkaConfig:
    max_model_len = 8192


AutoConfig.register("quokka", QuokkaConfig)
