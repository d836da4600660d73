"""Subsets of ImageNet's classes: what a vehicle meets in a city, on motorways, in the country, off roads.

References
----------
perf4sight, appendix D, which lists words and numbers of classes.  :data:`WORDS` says which words became which
classes, by their places among the 1,000 in the order of their folders.
"""

from __future__ import annotations

from typing import Literal, get_args

Subset = Literal["city", "motorway", "country-side", "off-road"]
SUBSETS: tuple[Subset, ...] = get_args(Subset)
CLASSES = 1000
DOGS = tuple(range(151, 269))
CATS = tuple(range(281, 286))
ROADS = {
    "station wagon": (436,),
    "car mirror": (475,),
    "car wheel": (479,),
    "convertible": (511,),
    "electric locomotive": (547,),
    "petrol pump": (571,),
    "jeep landrover": (609,),
    "minibus": (654,),
    "minivan": (656,),
    "Model T": (661,),
    "moving van": (675,),
    "passenger car / coach": (705,),
    "pay-phone": (707,),
    "pickup truck": (717,),
    "police car": (734,),
    "race car": (751,),
    "snowplow": (803,),
    "sports car": (817,),
    "tow truck": (864,),
    "street sign": (919,),
}
"""Words of all subsets but ``off-road``."""
STREETS = {
    **ROADS,
    "taxi": (468,),
    "garbage truck": (569,),
    "radiator grille": (581,),
    "lawn mower": (621,),
    "mailbox": (637,),
    "manhole cover": (640,),
    "moped": (665,),
    "scooter": (670,),
    "mountain bike": (671,),
    "parking meter": (704,),
    "school bus": (779,),
    "steel arch bridge": (821,),
    "traffic light": (920,),
    "palace": (698,),
    "mosque": (668,),
    "church building": (497,),
    "castle": (483,),
    "cardigan": (474,),
    "fur coat": (568,),
    "gown": (578,),
    "jersey / t-shirt": (610,),
    "suit": (834,),
    "sunglasses": (837,),
    "sweatshirt": (841,),
    "trench coat": (869,),
    "umbrella": (879,),
    "swan": (100,),
    "dogs": DOGS,
    "red fox": (277,),
    "cats": CATS,
}
"""Words of ``city`` and of ``country-side``."""
WORDS: dict[Subset, dict[str, tuple[int, ...]]] = {
    "city": {
        **STREETS,
        "ambulance": (407,),
        "trash can": (412,),
        "tandem bike": (444,),
        "crane": (517,),
        "fire engine, fire truck": (555,),
        "rickshaw": (612,),
        "limousine": (627,),
        "shopping cart": (791,),
        "tram": (829,),
        "suspension bridge": (839,),
        "trolley bus": (874,),
        "boathouse": (449,),
        "triumphal arch": (873,),
        "academic gown / robe": (400,),
    },
    "motorway": {
        **ROADS,
        "bullet train": (466,),
        "mobile home": (660,),
        "recreational vehicle": (757,),
        "trailer truck": (867,),
        "water tower": (900,),
        # The paper counts 26 classes, and its words give 25; what signs stand for is the likeliest other.
        "traffic light (not in the paper's list)": (920,),
    },
    "country-side": {
        **STREETS,
        "wheelbarrow": (428,),
        "bullet train": (466,),
        "freight car": (565,),
        "half track": (586,),
        "horse cart": (603,),
        "mobile home": (660,),
        "oxcart": (690,),
        "picket fence": (716,),
        "plough": (730,),
        "recreational vehicle": (757,),
        "snowmobile": (802,),
        "tank": (847,),
        "thatched roof": (853,),
        "tile roof": (858,),
        "tractor": (866,),
        "trailer truck": (867,),
        "worm fence": (912,),
        "hay": (958,),
        "lighthouse": (437,),
        "barn": (425,),
        "viaduct": (888,),
        "water tower": (900,),
        "sarong": (775,),
        "swimming trunks": (842,),
        "cock": (7,),
        "hen": (8,),
        "quail": (85,),
        "goose": (99,),
        "rabbits": (330, 331, 332),
        "ram": (348,),
        "sheep": (349,),
    },
    "off-road": {
        "mobile home": (660,),
        "mountain bike": (671,),
        "oxcart": (690,),
        "pickup truck": (717,),
        "plough": (730,),
        "snowmobile": (802,),
        "tank": (847,),
        "tractor": (866,),
        "hay": (958,),
        "ostrich": (9,),
        "iguana": (39,),
        "alligator": (50,),
        "wallaby": (104,),
        "koala": (105,),
        "wombat": (106,),
        "brown bear": (294,),
        "black bear": (295,),
        "hog": (341,),
        "wild boar": (342,),
        "ox": (345,),
        "water buffalo": (346,),
        "bison": (347,),
        "wild deer": (350, 351, 352, 353),
    },
}
"""Of each subset, the words of the paper and the classes that they became."""


def places(subset: Subset) -> list[int]:
    """Return the classes of a subset, by their places among all, rising."""
    return sorted({place for classes in WORDS[subset].values() for place in classes})
