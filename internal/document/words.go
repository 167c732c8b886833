package document

import (
	"slices"

	"golang.org/x/text/language"
)

// words are what the pages for people say besides what the site says.
type words struct {
	Sitemap, Home, Pages, Filter, None, Prev, Next, Feed string
}

// wordsBy are the words by the code of the language.
var wordsBy = map[string]words{
	"ar": {"خريطة الموقع", "الرئيسية", "الصفحات", "تصفية", "لم يُعثر على شيء", "السابق", "التالي", "أحدث التغييرات"},
	"de": {"Übersicht", "Startseite", "Seiten", "Filtern", "Nichts gefunden", "Zurück", "Weiter", "Zuletzt geändert"},
	"en": {"Sitemap", "Home", "Pages", "Filter", "Nothing found", "Previous", "Next", "Changed last"},
	"es": {"Mapa del sitio", "Inicio", "Páginas", "Filtrar", "Sin resultados", "Anterior", "Siguiente", "Últimos cambios"},
	"fa": {"نقشهٔ سایت", "خانه", "صفحه\u200cها", "پالایش", "چیزی یافت نشد", "قبلی", "بعدی", "آخرین تغییرات"},
	"fr": {"Plan du site", "Accueil", "Pages", "Filtrer", "Aucun résultat", "Précédent", "Suivant", "Dernières modifications"},
	"it": {"Mappa del sito", "Pagina iniziale", "Pagine", "Filtra", "Nessun risultato", "Precedente", "Successiva", "Ultime modifiche"},
	"ja": {"サイトマップ", "ホーム", "ページ", "絞り込み", "見つかりません", "前へ", "次へ", "最近の更新"},
	"nl": {"Overzicht", "Startpagina", "Pagina's", "Filteren", "Niets gevonden", "Vorige", "Volgende", "Laatst gewijzigd"},
	"pl": {"Mapa strony", "Strona główna", "Strony", "Filtruj", "Nic nie znaleziono", "Poprzednia", "Następna", "Ostatnie zmiany"},
	"pt": {"Mapa do site", "Início", "Páginas", "Filtrar", "Nada encontrado", "Anterior", "Seguinte", "Últimas alterações"},
	"ru": {"Карта сайта", "Главная", "Страницы", "Фильтр", "Ничего не найдено", "Назад", "Вперёд", "Последние изменения"},
	"tr": {"Site haritası", "Ana sayfa", "Sayfalar", "Filtrele", "Sonuç yok", "Önceki", "Sonraki", "Son değişiklikler"},
	"zh": {"网站地图", "首页", "页面", "筛选", "没有结果", "上一页", "下一页", "最近更改"},
}

// wordsIn are the words in a language, or else in English.
func wordsIn(lang language.Tag) words {
	base, _ := lang.Base()
	if in, ok := wordsBy[base.String()]; ok {
		return in
	}
	return wordsBy["en"]
}

// isRightToLeft reports whether a language is written from right to left.
func isRightToLeft(lang language.Tag) bool {
	script, _ := lang.Script()
	return slices.Contains([]string{"Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"}, script.String())
}
