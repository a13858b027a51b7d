"""What channels are, by the names that real instruments and programs give them."""

import pytest

from scaleshift.cells.sheets.channels import isotopes, kind, kinds, marker_name, modality

# Channels, or (channel, marker), of files under MIT and BSD licences: what each of them is.
REAL = {
    "fcsparser_fake_bitmask.lmd": {
        "marker": [
            ("FL1 INT LOG", "CD103-FITC"), ("FL2 INT LOG", "CD23-PE"), ("FL3 INT LOG", "CD19-ECD"),
            ("FL4 INT LOG", "CD22-PC5"), ("FL5 INT LOG", "CD45-PC7"),
        ],
        "scatter": [("FS INT LIN", "FS INT LIN"), ("SS INT LIN", "SS INT LIN")],
    },
    "fcsparser_cyflow_cube8.fcs": {
        "marker": ["FL1", "FL2", "FL3", "FL4", "FL5", "FL6"],
        "scatter": ["FSC", "SSC"], "time": ["TIME"], "other": ["DOUBLET"],
    },
    "flowio_variable_int.fcs": {
        "marker": [
            ("488/552nm PECy5.5 (710/40) LogH", "x1"), ("405nm BV710 (710/40) LogH", "x2"),
            ("488/552nm PE Cy7 (740LP) LogH", "x3"), ("405nm Qdot800 (740LP) LogH", "x4"),
            ("488/552nm PI (615/30) LogH", "x5"), ("488/552nm FITC (530/30) LogH", "x6"),
        ],
        "scatter": [
            "FSC LogH", "FSC LogA", "FSC LinH", "FSC LinA", "SSC LogH", "SSC LogA", "SSC LinH", "SSC LinA",
            ("405nm 405SSC (405/10) LogH", "x7"),
        ],
        "time": ["Time"], "other": ["Width"],
    },
    "flowkit_comp_example.fcs": {
        "marker": [
            ("Ax488-A", "pStat3"), ("PE-A", "CD33"), "PE-TR-A", ("PerCP-Cy55-A", "CD20"),
            ("PE-Cy7-A", "CD3"), ("Ax647-A", "pp38"), "Ax700-A", "Ax750-A", ("PacBlu-A", "CD4"),
            "Qdot525-A", "PacOrange-A", "Qdot605-A", "Qdot655-A", "Qdot705-A",
        ],
        "scatter": ["FSC-A", "FSC-W", "SSC-A"], "time": ["Time"],
    },
    "fcsparser_fortessa.fcs": {
        "marker": ["FITC-A", "PerCP-Cy5-5-A", "AmCyan-A", "PE-Texas Red-A"],
        "scatter": ["FSC-A", "FSC-H", "FSC-W", "SSC-A", "SSC-H", "SSC-W"], "time": ["Time"],
    },
    "fcsparser_duplicate_names.fcs": {
        "marker": [("FL7-A", "GFP/FITC-A")], "scatter": ["FSC-A", "FSC-H", "SSC-A", "SSC-H"],
        "other": ["HDR-CE", "HDR-SE", "HDR-V", ("FL7-H", "GFP/FITC-H")],
    },
    "flowio_data1.fcs": {
        "marker": [
            ("FL1-H", "CD4 FITC"), ("FL2-H", "CD8 B PE"),
            ("FL3-H", "CD3 PerCP"), ("FL4-H", "CD8 APC"),
        ],
        "scatter": [("FSC-H", "FSC-Height"), ("SSC-H", "SSC-Height")],
        "time": [("Time", "Time (102.40 sec.)")], "other": ["FL2-A"],
    },
    "flowkit_index_sorted.fcs": {
        "marker": [
            ("BL 530/30-A", "CD21;FITC;530/30@488/B"), ("YG 586/15-A", "CD138;PE;586/15@561/E"),
            ("RL 780/60-A", "CD19;APC-H7;780/60@640/A"), ("VL 525/50-A", "B220;V500;510/50@405/E"),
        ],
        "scatter": ["FSC-A", "FSC-W", "FSC-H", "SSC-A", "SSC-W", "SSC-H"], "time": ["Time"],
        "other": [("BL 695/40-A", "viability;7-AAD;695/40@488/A")],
    },
    "flowio_B01_KC.fcs": {
        "marker": [("FL1-A", "FITC-A"), ("FL2-A", "PE-A"), ("FL3-A", "PerCP-A"), ("FL4-A", "APC-A")],
        "scatter": ["FSC-A", "SSC-A", "FSC-H", "SSC-H"], "time": ["Time"],
        "other": [("FL1-H", "FITC-H"), ("FL2-H", "PE-H"), ("FL3-H", "PerCP-H"), ("FL4-H",
        "APC-H"), "Width"],
    },
    "fcsparser_macsquant_fcs30.fcs": {
        "marker": ["V2-A", "Y2-A", "B1-A"],
        "scatter": ["FSC-A", "FSC-H", "FSC-W", "SSC-A", "SSC-H", "SSC-W"], "time": ["HDR-T"],
        "other": ["V2-H", "V2-W", "Y2-H", "Y2-W", "B1-H", "B1-W"],
    },
    "tidytof_aml_healthy.fcs": {
        "marker": [
            "CD45_Y89", "CD61_In113", "CD45RA_La139", "CD3_CD19_Pr141", "CEBPa_Sm149", "pSTAT5_Nd150",
            "CD13_Gd152", "TIM-3_Gd154", "PU.1_Gd157", "caspase-3_Dy161", "HLA-DR_Yb174", "CD11b_Bi209",
        ],
        "time": ["Time"],
        "other": [
            "Event_length", "empty_Pd102", "empty_I127", "empty_Ir191", "cisplatin_Pt195",
            "Center", "Offset",
            "Width", "Residual", "beadst_beadDist",
        ],
    },
    "tidytof_scaffold_blood.fcs": {
        "marker": [
            "Ter119_In113", "CD45.2_In115", "120g8_Nd150", "CD16_32_Gd156", "F480_Nd143",
            "MHCII_Yb176",
        ],
        "time": ["Time"],
        "other": ["Cell_length", "BC1_Pd102", "BC6_Pd110", "DNA1_Ir191", "DNA2_Ir193", "Cisplatin_Pt195"],
    },
    "flowcal_Data001.fcs": {
        "marker": ["FL1-H", "FL2-H", "FL3-H"], "scatter": ["FSC-H", "SSC-H"],
        "time": [("Time", "Time (204.80 sec.)")],
    },
    "flowcal_Data002.fcs": {
        "marker": ["FITC-A", "PE-A", "PerCP-Cy5-5-A", "PE-Cy7-A", "APC-A", "APC-Cy7-A"],
        "scatter": ["FSC-A", "SSC-A"], "time": ["Time"],
    },
    "mconrad_icyt.fcs": {
        "marker": ["FL1", "FL2", "FL3", "FL4", "FL5"],
        "scatter": [("FS-Lin", "FS"), ("SS-Lin", "SS"), "FS-Peak-Lin", "SS-Peak-Lin"], "time": ["TIME"],
        "other": ["Unused6", "FL1-Peak-Lin", "FL5-Peak-Lin", "Unused14", "EV"],
    },
}  # fmt: skip
MASS = ("tidytof_aml_healthy.fcs", "tidytof_scaffold_blood.fcs")


def names_of(file):
    pairs = [(c, k) for k, channels in REAL[file].items() for c in channels]
    pairs = [((c, "") if isinstance(c, str) else c, k) for c, k in pairs]
    return [c for (c, _), _ in pairs], [m for (_, m), _ in pairs], [k for _, k in pairs]


@pytest.mark.parametrize("file", REAL)
def test_channels_of_real_files_are_what_they_are(file):
    channels, markers, expected = names_of(file)
    found = kinds(channels, markers)
    assert dict(zip(channels, found, strict=True)) == dict(zip(channels, expected, strict=True))


@pytest.mark.parametrize("file", REAL)
def test_real_files_tell_mass_from_fluorescence(file):
    channels, markers, _ = names_of(file)
    assert modality(channels, markers) == ("mass" if file in MASS else "fluorescence")


@pytest.mark.parametrize(
    "channel",
    [
        "Time",
        "TIME",
        "time",
        "HDR-T",
        "Time (102.40 sec.)",
        "TIME1",
        "Time MSW",
        "Computed Time",
        "Timestamp",
    ],
)
def test_clocks_are_time(channel):
    assert kind(channel) == "time"


@pytest.mark.parametrize(
    "channel",
    [
        "FSC-A", "ssc-h", "FSC.A", "FSC_W", "FSCA", "SSC-B-A", "VSSC-A", "FSC 488/10-A",
        "488-SSC-Area", "FSC1-A",
        "FS", "SS", "FS TOF LIN", "SS PEAK", "FS-Lin", "Forward scatter", "Side Scatter (SSC)",
        "FSC-HLin", "FSC-Width",
    ],
)  # fmt: skip
def test_scattered_light_is_scatter(channel):
    assert kind(channel) == "scatter"


@pytest.mark.parametrize(
    ("channel", "marker"),
    [
        ("Event_length", ""), ("Width", "Width"), ("FL2-W", ""), ("beadDist", "beadDist"), ("FileNum", ""),
        ("sample_id", ""), ("Event #", "Event Number"), ("Cell ID", ""), ("IdxRow", ""), ("cluster_id", ""),
        ("tSNE1", ""), ("UMAP_2", ""), ("bc_separation_dist", ""), ("mahalanobis_dist", ""), ("AF-A", ""),
        ("Ce140Di", "140Ce_Beads"), ("Eu153Di", "EQ4"), ("Ir191Di", "191Ir_DNA1"), ("Ir193Di", ""),
        ("Ir191Di", "Cells"),
        ("Pd102Di", "BC1"), ("Pd105Di", "105Pd_BC3"), ("Pd104Di", "Barcode_2"), ("Rh103Di", "103Rh_Live"),
        ("In113Di", ""), ("In113Di", "113In"), ("In113Di", "In113Di"), ("(In113)Di", "In113"),
        ("Xe131Di", "131Xe"),
        ("BCKG190Di", "190BCKG"), ("I127Di", "127I_empty"), ("Pt195Di", "Cisplatin"),
        ("Pt194Di", "194Pt_Viability"),
        ("AmCyan-A", "Live/Dead"), ("AmCyan-A", "LIVE DEAD Aqua"), ("AmCyan-A", "L/D"),
        ("APC-Cy7-A", "Zombie NIR"),
        ("PerCP-A", "7AAD"), ("PE-A", "PI"), ("BV510-A", "FVS510"), ("V450-A", "DAPI"), ("FL1", "empty"),
        ("7-AAD-A", ""), ("APC-A", "Dead"),
    ],
)  # fmt: skip
def test_what_is_no_antigen_is_other(channel, marker):
    assert kind(channel, marker) == "other"


@pytest.mark.parametrize(
    ("channel", "marker"),
    [
        ("Cd110Di", "CD110"), ("FITC-A", "CD110"), ("DAPI-A", "CD19"), ("PI-A", "CD8"), ("Pd102Di", "CD45"),
        ("Ce140Di", "140Ce_CD19"), ("Er168Di", "pSTAT3_Y705"), ("APC-A", "DNAM-1"), ("PE-A", "PD-1"),
        ("PE-A", "PI3K"), ("PE-A", "BCL-2"), ("PE-A", "CISH"), ("PE-A", "Annexin V"), ("PE-A", "SSEA-4"),
        ("PE-A", "LDHA"), ("PE-A", "Fascin (FSCN1)"), ("HLA-A", ""), ("CD45(In115)Dd", "CD45"),
        ("COL1", ""),
        ("CD3(110:114)Dd", "CD3"), ("PC5-A", "CD33"), ("Ir-A", "IgM"), ("channel_A", ""), ("CD4", ""),
    ],
)  # fmt: skip
def test_markers_that_look_like_something_else_stay_markers(channel, marker):
    assert kind(channel, marker) == "marker"


def test_of_one_pulse_the_named_then_the_compensated_then_the_usual_measure_counts():
    assert kinds(["FITC-A", "FITC-H"], ["CD4", "CD4"]) == ("marker", "other")
    assert kinds(["FITC-A", "FITC-H"], ["", "CD4"]) == ("other", "marker")
    assert kinds(["FITC-A", "Comp-FITC-A"], ["CD4", "CD4"]) == ("other", "marker")
    assert kinds(["FL1-A", "FL1-H", "FL2-H"], ["", "", ""]) == ("other", "marker", "marker")
    assert kinds(["FSC-A", "FSC-H"], ["", ""]) == ("scatter", "scatter")
    assert kinds(["PE-A", "PE-Cy7-A", "APC-H7-A"], ["", "", ""]) == ("marker",) * 3


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        ("Ce140Di", ["Ce"]), ("(Ce140)Dd", ["Ce"]), ("140Ce", ["Ce"]), ("140Ce_CD19", ["Ce"]),
        ("CD45(In115)Dd", ["In"]),
        ("CD110", []), ("Cd110", ["Cd"]), ("pSTAT3_Y705", []), ("Y89Di", ["Y"]), ("I12", []),
        ("Ho166", []), ("pTyr100", []),
    ],
)  # fmt: skip
def test_isotopes_are_elements_with_masses_in_use(name, elements):
    assert isotopes(name) == elements


@pytest.mark.parametrize("cytometer", ["CyTOF", "DVSSCIENCES-CYTOF-6.0", "Helios", "CyTOF XT", "XT"])
def test_the_cytometer_decides_where_names_do_not(cytometer):
    assert modality(["channel_A"], [""], cytometer) == "mass"
    assert modality(["channel_A"], [""], "LSRII") == "unknown"


def test_marker_names_are_kept_as_given():
    assert marker_name("Ce140Di", " 140Ce_CD19 ") == "140Ce_CD19"
    assert [marker_name("FITC-A", text) for text in ("", " ", "FITC-A", "NA", "-", "<NA>")] == [""] * 6
