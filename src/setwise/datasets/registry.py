"""What is known about the benchmark sets: homes, checksums of the decompressed bytes, citations, licences."""

from __future__ import annotations

from dataclasses import dataclass

from setwise.datasets.remote_files import RemoteFile


@dataclass(frozen=True)
class Entry:
    """One benchmark set as the registry knows it."""

    files: tuple[RemoteFile, ...]
    rows: int
    features: int
    classes: int
    average_size: float | None
    citation: str
    licence: str
    home: str | None
    class_names: tuple[str, ...] = ()


_IDX_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_PLL_HOME = "http://palm.seu.edu.cn/zhangml/files/"


def _images(
    name: str, home: str, checksums: tuple[str, ...], *, class_names: tuple[str, ...], citation: str, licence: str
) -> Entry:
    files = tuple(
        RemoteFile(name, file, home + file, sha256) for file, sha256 in zip(_IDX_FILES, checksums, strict=True)
    )
    return Entry(files, 70_000, 784, 10, None, citation, licence, home, class_names)


def _partial(
    file: str,
    shape: tuple[int, int, int],
    average_size: float,
    citation: str,
    *,
    sha256: str | None = None,
    archive: str | None = None,
    others: tuple[str, ...] = (),
) -> Entry:
    url = _PLL_HOME + archive if archive else None
    rows, features, classes = shape
    found = RemoteFile("pll", file, url, sha256, others)
    return Entry((found,), rows, features, classes, average_size, citation, "academic use only", url)


REGISTRY: dict[str, Entry] = {
    "mnist": _images(
        "mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        (
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        class_names=tuple("0123456789"),
        citation="LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, 1998",
        licence="public benchmark",
    ),
    "kmnist": _images(
        "kmnist",
        "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
        (
            "7112ba9ec422d98de4885262d4a4dff14cc4fefb81c11ace8bf563a8255df5c3",
            "2a16eeae62da984b8bd24fa32e31d47291f01dac3fe84d5594f304f71e7d374b",
            "76fbd229ce87db80dd281af5e6670de4ad0e42fb30a7bd643972994c47c1f42e",
            "a11dc742be8e781a40a92f53d6a4957e7b7d36df2faa097659131ebfd8fd60c6",
        ),
        class_names=tuple("おきすつなはまやれを"),
        citation="Clanuwat et al.: Deep learning for classical Japanese literature, 2018",
        licence="CC BY-SA 4.0",
    ),
    "fashion_mnist": _images(
        "fashion_mnist",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        (
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        class_names=(
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
        citation="Xiao, Rasul, Vollgraf: Fashion-MNIST, a novel image dataset for benchmarking, 2017",
        licence="MIT",
    ),
    "lost": _partial(
        "lost.mat",
        (1_122, 108, 16),
        2.23,
        "Cour, Sapp, Taskar: Learning from partial labels, 2011",
        sha256="42a8cc43e05578087e7b8ca194647829ec535dc4d0a86cf47f357c5eb3146e4f",
        archive="lost.rar",
    ),
    "msrcv2": _partial(
        "MSRCv2.mat",
        (1_758, 48, 23),
        3.16,
        "Liu, Dietterich: A conditional multinomial mixture model for superset label learning, 2012",
        sha256="948e4d443a5450308f05aa689bc82d9bcc7af699a113a6a81c40ef337a20c393",
        archive="MSRCv2.rar",
    ),
    "birdsong": _partial(
        "BirdSong.mat",
        (4_998, 38, 13),
        2.18,
        "Briggs, Fern, Raich: Rank-loss support instance machines for MIML instance annotation, 2012",
        sha256="2170d46765a151ac80623d9a1242e0299802236e5574442bdb596bef90f50743",
        archive="BirdSong.rar",
        others=("birdac.mat",),
    ),
    "soccer_player": _partial(
        "Soccer Player.mat",
        (17_472, 279, 171),
        2.09,
        "Zeng et al.: Learning by associating ambiguously labeled images, 2013",
        archive="Soccer%20Player.rar",
        others=("SoccerPlayer.mat", "spd.mat"),
    ),
    "yahoo_news": _partial(
        "Yahoo! News.mat",
        (22_991, 163, 219),
        1.91,
        "Guillaumin, Verbeek, Schmid: Multiple instance metric learning from labeled bags of faces, 2010",
        archive="Yahoo!%20News.rar",
        others=("YahooNews.mat", "LYN.mat"),
    ),
    "fg_net": _partial(
        "FG-NET.mat",
        (1_002, 262, 78),
        7.48,
        "Panis et al.: Overview of research on facial ageing using the FG-NET ageing database, 2016",
        sha256="5b8d43e40cee007f6438a7a74d600b5cf67ac596754a322ce91b0fc6811f45db",
    ),
    "italian": _partial(
        "italian.mat",
        (21_878, 519, 90),
        1.60,
        "Bos et al.: Converting a dependency treebank to a categorial grammar treebank, 2009",
        sha256="7981fff3efd2df21abfac990d71777dd9637bf6ab8ccd15066b086287b9e6fde",
    ),
}
