"""How the documentation is built: ``make docs``, with every warning an error."""

import sys
from pathlib import Path

from rfrboost import __version__

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "tools")]

project = "rfrboost"
author = "The rfrboost developers"
copyright = "2026, the rfrboost developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "internals",
    "notebooks",
    "pages",
    "search_index",
]
exclude_patterns = ["_build", "gallery/README.rst", "**sg_execution_times.rst"]
nitpicky = True
# The gallery's order is a function, which Sphinx cannot compare with that of the last build.
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"
# Pages are the same with and without PyTorch, which is too large to ask for here.
autodoc_mock_imports = ["torch"]
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
templates_path = ["_templates"]

# The button copies the code alone, without prompts.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "pages.gallery_order",
    "reset_modules": ("matplotlib", "pages.limit_time"),
    "reset_modules_order": "both",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "default_thumb_file": str(HERE / "demo.png"),
    "copyfile_regex": "",
    "min_reported_time": 0,
    "remove_config_comments": True,
    "plot_gallery": "True",
}

html_theme = "furo"
html_title = f"rfrboost {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b5d7a", "color-brand-content": "#0b6e99"},
    "dark_css_variables": {"color-brand-primary": "#7cc5e0", "color-brand-content": "#7cc5e0"},
}
