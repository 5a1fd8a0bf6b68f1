"""A page of Markdown as one HTML file."""

from reproduction.html_page import page_as_html


def test_pictures_are_written_into_the_page_and_html_is_shown_not_run(tmp_path):
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    text = "# Title\n\n| a | b |\n|---|---|\n| 1 | <script>alert(1)</script> |\n\n![what it shows](plots/a.svg)\n"
    made = page_as_html(text, tmp_path, "<b>T</b>")
    assert "<script>" not in made
    assert "&lt;script&gt;" in made
    assert "<title>&lt;b&gt;T&lt;/b&gt;</title>" in made
    assert 'src="data:image/svg+xml;base64,' in made
    assert 'alt="what it shows"' in made
    assert "<td>1</td>" in made
