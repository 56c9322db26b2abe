from hypothesis import settings

# A busy machine is no failure: examples may take longer than hypothesis' 200 ms.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
