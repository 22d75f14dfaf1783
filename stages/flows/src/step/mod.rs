//! What is measured in steps of capture time: Tstat's histograms and the cells of the archive.
