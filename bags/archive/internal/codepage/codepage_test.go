package codepage

import (
	"testing"

	"golang.org/x/text/encoding"
)

func TestGuessCodePage(t *testing.T) {
	for _, c := range []struct {
		page  string
		names []string
	}{
		{"cp850", []string{"Lettre à Zoé.txt", "Überblick.doc"}},
		{"cp850", []string{"Größe.txt"}},
		{"windows-1252", []string{"Größe.txt"}},
		{"windows-1252", []string{"Lettre à Zoé.txt", "façade/été.jpg"}},
		{"cp866", []string{"Привет, мир.txt", "Договор № 5.doc"}},
		{"windows-1251", []string{"Привет, мир.txt", "Отчёт за год.doc"}},
		{"shift_jis", []string{"日本語/写真.jpg", "テスト.txt"}},
		{"shift_jis", []string{"新しいフォルダ/報告書.doc"}},
		{"gbk", []string{"中文/照片.jpg", "新建文件夹/报告.doc"}},
		{"euc-kr", []string{"새 폴더/보고서.hwp", "한국어 문서.txt"}},
		{"cp852", []string{"Příliš žluťoučký kůň.txt"}},
		{"windows-1250", []string{"Příliš žluťoučký kůň.txt"}},
		{"windows-1253", []string{"Καλημέρα κόσμε.txt"}},
	} {
		var stored []string
		for _, n := range c.names {
			stored = append(stored, inPage(t, c.page, n))
		}
		n, note, err := New("", stored)
		if err != nil || note == "" {
			t.Errorf("%s %q: %q, %v", c.page, c.names, note, err)
		}
		for i, s := range stored {
			if got := n.Decode(s); got != c.names[i] {
				t.Errorf("%s: %q reads as %q (%s)", c.page, c.names[i], got, n.page.name)
			}
		}
	}
}

func inPage(t *testing.T, page, name string) string {
	t.Helper()
	for _, p := range codePages() {
		if p.name == page {
			s, err := encoding.ReplaceUnsupported(p.enc.NewEncoder()).String(name)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	t.Fatalf("no code page %s", page)
	return ""
}

func TestNamesThatArePlainlyUTF8(t *testing.T) {
	n, note, err := New("", []string{"größe", "plain"})
	if err != nil || note != "" || n.Decode("größe") != "größe" {
		t.Errorf("%v, %q, %v", n, note, err)
	}
	if _, _, err := New("cp1", nil); err == nil {
		t.Error("an unknown code page was taken")
	}
	n, _, err = New("CP866", nil)
	if err != nil || n.Decode("\x8f\xe0\xa8") != "При" {
		t.Errorf("%q, %v", n.Decode("\x8f\xe0\xa8"), err)
	}
}
