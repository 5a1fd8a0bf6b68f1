// Names for links and buttons that the theme and the gallery draw without words, and the keyboard for what scrolls.
addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll(".bd-sidebar summary, .bd-sidebar-primary summary")) {
    toggle.setAttribute("aria-label", "Pages below");
  }
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a")) {
    link.setAttribute("aria-label", link.textContent.trim());
  }
  for (const table of document.querySelectorAll("table.dataframe")) table.tabIndex = 0;
});
