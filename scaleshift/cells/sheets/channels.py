"""What kind of channel is this: a marker, scatter, time, or something else? Names alone decide."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from scaleshift.cells.sheets.tables import MISSING

Kind = Literal["marker", "scatter", "time", "other"]
Modality = Literal["mass", "fluorescence", "unknown"]

# What programs write where no name was given
NO_NAME = MISSING | {"-", "none"}

# Isotopes of mass cytometry, element and mass numbers: Cd110 is one, CD110 a marker, Y705 a phosphorylation
ISOTOPES = {
    "Ag": (107, 109), "ArAr": (80, 80), "Au": (197, 197), "BCKG": (190, 190), "Ba": (130, 138),
    "Bi": (209, 209), "Cd": (106, 116), "Ce": (136, 142), "Cs": (133, 133), "Dy": (156, 164),
    "Er": (162, 170), "Eu": (151, 153), "Gd": (152, 160), "Hg": (196, 204), "Ho": (165, 165),
    "I": (124, 131), "In": (113, 115), "Ir": (191, 193), "La": (138, 139), "Lu": (175, 176),
    "Nd": (142, 150), "Os": (184, 192), "Pb": (204, 208), "Pd": (102, 110), "Pr": (141, 141),
    "Pt": (190, 198), "Rh": (103, 103), "Ru": (96, 104), "Sm": (144, 154), "Sn": (112, 124),
    "Sr": (84, 88), "Ta": (180, 181), "Tb": (159, 159), "Te": (120, 130), "Tl": (203, 205),
    "Tm": (169, 169), "Xe": (124, 136), "Y": (89, 89), "Yb": (168, 176), "Zr": (90, 96),
}  # fmt: skip
_ELEMENTS = "|".join(ISOTOPES)
ISOTOPE = re.compile(
    rf"(?<![A-Za-z0-9])(?:({_ELEMENTS})([0-9]{{2,3}})|([0-9]{{2,3}})({_ELEMENTS}))\)?(?:D[id])?(?![A-Za-z0-9])"
    r"|\([0-9]+:[0-9]+\)D[id]"  # (110:114)Dd: several isotopes of one element
)

TIME = re.compile(
    r"(hdr[-_ ]?t|((computed|acquisition|elapsed)[-_ ]*)?time([-_ ]?(lsw|msw|stamp|[0-9]+|ms|s))?)"
    r"(\s*\(.*\))?",
    re.IGNORECASE,
)
SCATTER = re.compile(
    r"(?<![a-z])[bgrvy]?(fsc|ssc|bsc|fals|lals)[0-9]?[ahw]?(?![a-z0-9])"
    r"|^(fs|ss)([-_ .]+(int|peak|tof|lin|log|area|height|width|[ahw])+)*$"
    r"|(forward|fwd|side|back|angle|light)[-_ .]*scat|^scatter",
    re.IGNORECASE,
)
# Of an event, not of its antigens (letters and digits only): pulses, counters, what a program wrote in
BOOKKEEPING = frozenset((
    "eventlength", "celllength", "length", "center", "offset", "residual", "width", "pulsewidth",
    "triggerpulsewidth", "doublet", "doublets", "singlet", "singlets", "ev", "event", "events",
    "eventnumber", "eventnum", "eventno", "eventnr", "eventid", "eventcount", "eventindex", "cellid",
    "cellnumber", "cellnum", "cellindex", "objectid", "objectnumber", "trackid", "file", "filenum",
    "filenumber", "fileno", "filename", "fileid", "sample", "sampleid", "samplename", "samplenumber",
    "donor", "donorid", "patient", "patientid", "batch", "batchid", "condition", "group", "index",
    "rowname", "rownames", "row", "column", "idxrow", "idxcol", "idxcolumn", "indexrow", "indexcol",
    "indexcolumn", "indexsort", "well", "wellid", "plate", "plateid", "sortwell", "sortresultbits",
    "sortenablebits", "classifierbits", "dropphase", "rawframe", "clusterid", "clusters", "clustering",
    "metaclusterid", "metaclustering", "flowsom", "som", "population", "populationid", "label",
    "labels", "labelid", "gate", "gateid", "celltype", "hdrce", "hdrse", "hdrv", "af",
    "autofluorescence", "autofluor", "mahalanobis", "mahalanobisdistance", "mahalanobisdist",
    "bcseparation", "bcseparationdist", "bcseparationdistance", "separationdistance", "bcid",
    "bcnumber", "debarcoded",
))  # fmt: skip
NUMBERED = frozenset((
    "unused", "tsne", "bhsne", "opttsne", "visne", "umap", "pca", "phate", "cluster", "metacluster",
    "flowsomcluster", "flowsommetacluster", "phenograph", "phenographcluster", "roibits", "timebits",
))  # fmt: skip
BLANK = frozenset(("empty", "blank", "unused", "notused", "bckg", "bkg", "background", "void"))
BARCODE = re.compile(r"(^|[^a-z0-9])(bc[0-9]+|barcode[0-9]*)([^a-z0-9]|$)|^bc$", re.IGNORECASE)
BEADS = re.compile(r"bead|(^|[^a-z0-9])eq[0-9]?([^a-z0-9]|$)", re.IGNORECASE)
DNA = re.compile(
    r"(cells?)?dna[0-9]*(ir|content|intercalator)?|intercalator|iridium|hoechst[0-9]*|dapi|draq5"
)
# Dead or alive is how a cell was treated, not which cell it is, and it is gated before: no feature.
VIABILITY = re.compile(
    r"^(live|dead|l[/_ -]?d)([^a-z]|$)|([^a-z]|^)(live|dead|ld)$|(live|dead)[^a-z]*(live|dead)"
    r"|viab|^via$|zombie|cis-?(plat|pt)|^cis$|7-?aad|propidium|^pi$|sytox|^aqua$|ghost[^a-z]*dye|fvd([^a-z]|$)|fvs[0-9]|draq7"
    r"|fixable",
    re.IGNORECASE,
)

PULSE = re.compile(
    r"(?P<compensated>(?:FJ)?Comp-)?(?P<detector>.+?)(?:[-_ .](?:lin|log))?"
    r"(?:[-_ .]+(?:lin|log)?(?P<measure>area|int|height|peak|width|tof|[ahw])(?:lin|log)?)?"
    r"(?:[-_ .](?:lin|log))?",
    re.IGNORECASE,
)
MEASURES = {"area": 0, "int": 0, "a": 0, "height": 1, "peak": 1, "h": 1, "width": 2, "tof": 2, "w": 2}
WIDTH = 2

MASS_CYTOMETER = re.compile(r"cytof|dvs|helios|fluidigm|standard bio|hyperion|(^|\W)xt(\W|$)", re.IGNORECASE)
FLUORESCENCE = re.compile(
    r"^fl ?[0-9]|fitc|percp|alexa|texas|pacific|amcyan|qdot|cy[-.]?[357]|[0-9]{3}/[0-9]{2}|-[ahw]$"
    r"|(^|[^a-z])(pe|apc|gfp|bu?v[0-9]{3}|bb[0-9]{3}|af[0-9]{3}|ax[0-9]{3})([^a-z]|$)"
    r"|^[bgruvy][a-z]?[0-9]{1,3}([-_ ]|$)",
    re.IGNORECASE,
)


def marker_name(channel: str, marker: str) -> str:
    """The marker name as given, stripped; "" where there is none, or it repeats the channel's.

    Examples
    --------
    >>> marker_name("Ce140Di", " CD19 "), marker_name("FITC-A", "FITC-A"), marker_name("FITC-A", "NA")
    ('CD19', '', '')
    """
    name = marker.strip()
    return "" if name == channel.strip() or name.casefold() in NO_NAME else name


@lru_cache(maxsize=65_536)
def kind(channel: str, marker: str = "") -> Kind:
    """What a channel measures, judged by its names.

    Parameters
    ----------
    channel, marker : str
        $PnN and $PnS, "" if none.

    Returns
    -------
    "marker", "scatter", "time" or "other"
        other: no antigen. Lengths and widths of pulses, counters, barcodes, beads, DNA, viability, results
        of clusterings, and isotopes without a marker.

    Examples
    --------
    >>> kind("FSC-A"), kind("HDR-T"), kind("Ir191Di", "DNA1"), kind("Pr141Di"), kind("Pr141Di", "CD7")
    ('scatter', 'time', 'other', 'other', 'marker')
    """
    given = marker_name(channel, marker)
    names = [name for name in (channel.strip(), given) if name]
    if any(TIME.fullmatch(name) for name in names):
        return "time"
    if any(SCATTER.search(name) for name in names):
        return "scatter"
    if any(_is_bookkeeping(_bare(name)) for name in names) or _pulse(channel)[2] == WIDTH:
        return "other"
    return "other" if _no_antigen(channel, given or channel) else "marker"


def kinds(channels: Sequence[str], markers: Sequence[str]) -> tuple[Kind, ...]:
    """The kind of each channel of a file; of several measures of one pulse, one is a marker.

    Area, height and width of a detector (``FITC-A``, ``FITC-H``, ``FITC-W``) tell the same thing; so do a
    compensated channel and its raw one. The one with a marker name counts, else the compensated one, else
    the measure that most detectors of the file have, else the area; the others are "other".

    Examples
    --------
    >>> kinds(["FITC-A", "FITC-H", "FL2-A", "FL2-H"], ["", "", "", "CD8"])
    ('marker', 'other', 'other', 'marker')
    """
    found = [kind(channel, marker) for channel, marker in zip(channels, markers, strict=True)]
    by_detector = defaultdict(list)
    measures: Counter[int] = Counter()
    for i, channel in enumerate(channels):
        if found[i] == "marker" and not isotopes(channel):
            detector, compensated, measure = _pulse(channel)
            measures[measure] += 1
            unnamed = not marker_name(channel, markers[i])
            by_detector[detector].append((unnamed, not compensated, measure, i))
    for alike in by_detector.values():
        order = sorted(alike, key=lambda c: (c[0], c[1], -measures[c[2]], c[2]))
        for *_, i in order[1:]:
            found[i] = "other"
    return tuple(found)


def modality(channels: Sequence[str], markers: Sequence[str], cytometer: str = "") -> Modality:
    """Whether a file is of mass or of fluorescence cytometry, by its cytometer ($CYT) or channel names.

    Examples
    --------
    >>> modality(["Time", "Ce140Di"], ["", ""]), modality(["FSC-A", "FITC-A"], ["", ""])
    ('mass', 'fluorescence')
    >>> modality(["channel_A"], [""])
    'unknown'
    """
    if cytometer and MASS_CYTOMETER.search(cytometer):
        return "mass"
    pairs = list(zip(channels, markers, strict=True))
    n_mass = sum(bool(isotopes(c) or isotopes(m)) for c, m in pairs)
    n_fluorescence = sum(kind(c, m) == "scatter" or bool(FLUORESCENCE.search(c)) for c, m in pairs)
    if n_mass == n_fluorescence:
        return "unknown"
    return "mass" if n_mass > n_fluorescence else "fluorescence"


def isotopes(name: str) -> list[str]:
    """The elements of the isotopes in a name.

    Examples
    --------
    >>> isotopes("CD45_Y89"), isotopes("(Ce140)Dd"), isotopes("CD110"), isotopes("pSTAT3_Y705")
    (['Y'], ['Ce'], [], [])
    """
    return [match[1] or match[4] or "Cd" for match in ISOTOPE.finditer(name) if _exists(match)]


def _exists(match: re.Match[str]) -> bool:
    element, mass = match[1] or match[4], match[2] or match[3]
    return not element or ISOTOPES[element][0] <= int(mass) <= ISOTOPES[element][1]


def _is_bookkeeping(bare: str) -> bool:
    return bare in BOOKKEEPING or bare.rstrip("0123456789") in NUMBERED


def _no_antigen(channel: str, name: str) -> bool:
    """Whether the name of a stain says that nothing, or no antigen, was stained."""
    stain = ISOTOPE.sub(lambda match: "" if _exists(match) else match[0], name).strip(" _-.:;()")
    bare = _bare(stain)
    if not bare or bare.rstrip("0123456789") in BLANK or "Ir" in isotopes(channel):
        return True
    dye, _, _ = _pulse(stain)
    return bool(BARCODE.search(dye) or BEADS.search(dye) or DNA.fullmatch(bare) or VIABILITY.search(dye))


def _bare(name: str) -> str:
    """Letters and digits in lower case, without the measure of the pulse."""
    return re.sub(r"[\W_]", "", _pulse(name)[0]).casefold()


def _pulse(channel: str) -> tuple[str, bool, int]:
    """Detector, whether compensated, and measure (area 0, height 1, width 2) of a channel."""
    match = PULSE.fullmatch(channel.strip())
    if match is None:
        return channel, False, 0
    measure = MEASURES[(match["measure"] or "area").casefold()]
    return match["detector"], match["compensated"] is not None, measure
