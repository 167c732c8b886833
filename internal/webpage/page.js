"use strict";
{
	const words = document.querySelector("#words");
	const count = document.querySelector("output");
	const sections = document.querySelectorAll("section");
	const fold = text => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
	const pathOf = a => {
		try {
			return a.closest(".folders, .parts") ? "" : decodeURI(a.pathname); // that of a document says nothing
		} catch {
			return ""; // it is not UTF-8
		}
	};
	const rows = Array.from(document.querySelectorAll("ul a"), a => {
		const li = a.parentElement;
		return { a, li, text: fold(`${li.textContent} ${pathOf(a)}`) };
	});
	const isJump = a => a.getAttribute("href").startsWith("#"); // to a section, whose rows are searched themselves
	const wanted = () => fold(words.value).split(/\s+/).filter(word => word);
	const hits = () => {
		const all = wanted();
		return rows.filter(({ a, text }) => !isJump(a) && all.every(word => text.includes(word)));
	};
	const said = (shown, all) => {
		if (shown === 0) {
			return "Nothing found on this page";
		}
		return `${shown.toLocaleString("en")} of ${all.toLocaleString("en")}`;
	};
	const filter = () => {
		const isOn = wanted().length > 0;
		const shown = new Set(isOn ? hits() : rows);
		for (const row of rows) {
			row.li.hidden = !shown.has(row);
		}
		for (const section of sections) {
			section.hidden = !section.querySelector("li:not([hidden])");
		}
		const all = rows.filter(({ a }) => !isJump(a)).length;
		count.textContent = isOn ? said(shown.size, all) : "";
	};
	words.addEventListener("input", filter);
	words.addEventListener("keydown", event => {
		if (event.key === "Enter" && !event.isComposing && wanted().length) {
			hits()[0]?.a.click();
		}
		if (event.key === "Escape") {
			words.value = "";
			filter();
		}
	});
	addEventListener("pageshow", filter); // the browser may have kept the words
	words.parentElement.hidden = false;
}
