"""The paper's own figures."""

#: Section 6.2: F-measure and seconds, mean over 150 runs.
SECTION_6_2 = {"LSPC": (0.556, 3.3), "ML-LSPC": (0.561, 5.5), "ML-kNN": (0.372, 9.6), "InsDif": (0.526, 470.7)}
#: Section 6.1. Figure 1 has curves, and the text no numbers.
FIGURE_1A = "ML-LSPC and InsDif perform well, plain LSPC and ML-kNN poorly"
FIGURE_1B = "conjugate gradients much more efficient than the direct solve; InsDif slow"
