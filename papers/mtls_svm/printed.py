"""The paper's tables: mean and deviation over ten splits."""

#: School, explained variance in percent.
TABLE_2 = {"LS-SVM": (9.8, 0.6), "MTLS-SVM": (38.16, 0.3), "RMTL": (34.32, 0.4), "BMTL": (34.37, 0.4)}
#: Dermatology, error in percent.
TABLE_3 = {
    "LS-SVM": (7.9, 3.2),
    "MTLS-SVM": (8.2, 2.7),
    "MTL-FEAT": (9.5, 3.0),
    "independent, RBF, of another paper": (9.8, 3.1),
}
