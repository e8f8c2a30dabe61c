"""The page of a comparison: one self-contained HTML file.

Vega-Lite draws the charts as SVG when the page is written. A chart library within the
page would be 0.8 MB (Vega) or 4.8 MB (Plotly) of script. Vega would need the right to
evaluate text as code, which the page forbids, and neither adapts to dark mode or
printing by itself. A few lines of script show the mark under the pointer and bring a
system forward.
"""

from keras_attnvariants.experiments.page.rendering import write_page as write_page
