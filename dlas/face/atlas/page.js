// ------------------------------------------------------------ start

// Show what the choice leaves, from its first row on, and write it into the page's address.
function answer() {
  first = 0;
  select();
  showTable();
  showChoices();
  showForm();
  const address = addressOf();
  if (address !== location.hash.slice(1)) history.replaceState(null, "", `#${address}`);
}

// A place on this page is no choice: its name would take that out of the address.
one("skip").addEventListener("click", (event) => { event.preventDefault(); one("table").focus(); });
listenToForm();
listenToTable();
listenToDetails();
one("filters-all").open = innerWidth > 960;
addEventListener("hashchange", () => { chooseByAddress(location.hash); answer(); });
chooseByAddress(location.hash);
answer();
