"""The benchmark sets and where their files are."""


def test_every_fetched_set_has_a_checksum_or_is_known_to_have_none():
    from setwise.datasets.registry import REGISTRY

    bare = {name for name, entry in REGISTRY.items() for file in entry.files if file.url and not file.sha256}
    assert bare == {"soccer_player", "yahoo_news"}  # no copy to take it from; loading compares shape and classes
