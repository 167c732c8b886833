package document

import (
	"slices"

	"golang.org/x/text/language"
)

// words are what the pages for people say besides what the site says.
type words struct {
	Sitemap, Home, Pages, Filter, None, Feed string
}

// wordsBy are the words by the code of the language.
var wordsBy = map[string]words{
	"ar": {"خريطة الموقع", "الرئيسية", "الصفحات", "تصفية", "لم يُعثر على شيء", "أحدث التغييرات"},
	"de": {"Übersicht", "Startseite", "Seiten", "Filtern", "Nichts gefunden", "Zuletzt geändert"},
	"en": {"Sitemap", "Home", "Pages", "Filter", "Nothing found", "Changed last"},
	"es": {"Mapa del sitio", "Inicio", "Páginas", "Filtrar", "Sin resultados", "Últimos cambios"},
	"fa": {"نقشهٔ سایت", "خانه", "صفحه\u200cها", "پالایش", "چیزی یافت نشد", "آخرین تغییرات"},
	"fr": {"Plan du site", "Accueil", "Pages", "Filtrer", "Aucun résultat", "Dernières modifications"},
	"it": {"Mappa del sito", "Pagina iniziale", "Pagine", "Filtra", "Nessun risultato", "Ultime modifiche"},
	"ja": {"サイトマップ", "ホーム", "ページ", "絞り込み", "見つかりません", "最近の更新"},
	"nl": {"Overzicht", "Startpagina", "Pagina's", "Filteren", "Niets gevonden", "Laatst gewijzigd"},
	"pl": {"Mapa strony", "Strona główna", "Strony", "Filtruj", "Nic nie znaleziono", "Ostatnie zmiany"},
	"pt": {"Mapa do site", "Início", "Páginas", "Filtrar", "Nada encontrado", "Últimas alterações"},
	"ru": {"Карта сайта", "Главная", "Страницы", "Фильтр", "Ничего не найдено", "Последние изменения"},
	"tr": {"Site haritası", "Ana sayfa", "Sayfalar", "Filtrele", "Sonuç yok", "Son değişiklikler"},
	"zh": {"网站地图", "首页", "页面", "筛选", "没有结果", "最近更改"},
}

// wordsIn are the words in a language, or else in English.
func wordsIn(lang language.Tag) words {
	base, _ := lang.Base()
	if in, ok := wordsBy[base.String()]; ok {
		return in
	}
	return wordsBy["en"]
}

// direction is that in which a language is written.
func direction(lang language.Tag) string {
	script, _ := lang.Script()
	if slices.Contains([]string{"Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"}, script.String()) {
		return "rtl"
	}
	return "ltr"
}
