package describe

import (
	"slices"

	"github.com/antchfx/xmlquery"
)

// dialect says where the side-cars of one kind have what is asked of them. Names are local:
// the namespaces of one standard have changed over its versions.
type dialect struct {
	name     string
	roots    []string
	with     string // an XPath that must be there, too
	business map[string]string
	start    []string
	end      []string
	corners  []string // west, south, east, north; or longitude, latitude of four corners in their order
	list     string   // of latitudes and longitudes
	boxes    string   // the elements that hold corners, where there may be several
}

func (d dialect) fits(root string, doc *xmlquery.Node) bool {
	return slices.Contains(d.roots, root) && (d.with == "" || first(doc, d.with) != "")
}

// at finds an element by the local names that lead to it, from anywhere.
func at(names ...string) string {
	path := ""
	for _, n := range names {
		path += "//*[local-name()='" + n + "']"
	}
	return path
}

var dialects = []dialect{
	{
		name: "ISO 19139", roots: []string{"MD_Metadata", "MI_Metadata"},
		business: map[string]string{
			"title":      at("identificationInfo", "citation") + "/*/*[local-name()='title']",
			"abstract":   at("identificationInfo", "abstract"),
			"identifier": "/*/*[local-name()='fileIdentifier']",
			"originator": at("citation", "citedResponsibleParty", "organisationName"),
			"keywords":   at("descriptiveKeywords", "keyword"),
			"topics":     at("topicCategory"),
			"language":   at("identificationInfo", "language") + "//@codeListValue",
			"published":  at("identificationInfo", "citation") + "/*/*[local-name()='date']" + at("Date"),
			"rights":     at("resourceConstraints", "useLimitation"),
		},
		start: []string{at("temporalElement", "beginPosition"), at("temporalElement", "timePosition"), at("temporalElement", "begin", "timePosition")},
		end: []string{at("temporalElement", "endPosition"), at("temporalElement", "end", "timePosition"),
			at("temporalElement", "endPosition") + "/@indeterminatePosition"},
		boxes: at("EX_GeographicBoundingBox"),
		corners: []string{"." + at("westBoundLongitude"), "." + at("southBoundLatitude"),
			"." + at("eastBoundLongitude"), "." + at("northBoundLatitude")},
	},
	{
		name: "FGDC", roots: []string{"metadata"}, with: "/metadata/idinfo",
		business: map[string]string{"title": "//idinfo/citation/citeinfo/title", "abstract": "//idinfo/descript/abstract", "originator": "//idinfo/citation/citeinfo/origin",
			"keywords": "//idinfo/keywords//themekey | //idinfo/keywords//placekey", "published": "//idinfo/citation/citeinfo/pubdate", "rights": "//idinfo/useconst"},
		start:   []string{"//idinfo/timeperd//begdate", "//idinfo/timeperd//caldate"},
		end:     []string{"//idinfo/timeperd//enddate"},
		corners: []string{"//spdom/bounding/westbc", "//spdom/bounding/southbc", "//spdom/bounding/eastbc", "//spdom/bounding/northbc"},
	},
	{
		name: "Gaofen", roots: []string{"ProductMetaData"},
		business: map[string]string{"satellite": "/*/SatelliteID", "sensor": "/*/SensorID", "product": "/*/ProductID", "scene": "/*/SceneID", "level": "/*/ProductLevel",
			"cloudPercent": "/*/CloudPercent", "resolution": "/*/ImageGSD", "received": "/*/ReceiveTime", "produced": "/*/ProduceTime", "orbit": "/*/OrbitID"},
		start: []string{"/*/StartTime", "/*/CenterTime", "/*/ReceiveTime"},
		end:   []string{"/*/EndTime"},
		corners: []string{"/*/TopLeftLongitude", "/*/TopLeftLatitude", "/*/BottomLeftLongitude", "/*/BottomLeftLatitude",
			"/*/BottomRightLongitude", "/*/BottomRightLatitude", "/*/TopRightLongitude", "/*/TopRightLatitude"},
	},
	{
		name: "Landsat", roots: []string{"LANDSAT_METADATA_FILE"},
		business: map[string]string{"satellite": "//SPACECRAFT_ID", "sensor": "//SENSOR_ID", "product": "//LANDSAT_PRODUCT_ID", "scene": "//LANDSAT_SCENE_ID",
			"level": "//PROCESSING_LEVEL", "cloudPercent": "//CLOUD_COVER", "path": "//WRS_PATH", "row": "//WRS_ROW"},
		start: []string{"concat(//DATE_ACQUIRED, 'T', substring(//SCENE_CENTER_TIME, 1, 8), 'Z')", "//DATE_ACQUIRED"},
		corners: []string{"//CORNER_UL_LON_PRODUCT", "//CORNER_UL_LAT_PRODUCT", "//CORNER_LL_LON_PRODUCT", "//CORNER_LL_LAT_PRODUCT",
			"//CORNER_LR_LON_PRODUCT", "//CORNER_LR_LAT_PRODUCT", "//CORNER_UR_LON_PRODUCT", "//CORNER_UR_LAT_PRODUCT"},
	},
	{
		name: "Sentinel-2", roots: []string{"Level-1C_User_Product", "Level-2A_User_Product"},
		business: map[string]string{"satellite": "//SPACECRAFT_NAME", "product": "//PRODUCT_URI", "level": "//PROCESSING_LEVEL", "cloudPercent": "//Cloud_Coverage_Assessment", "orbit": "//SENSING_ORBIT_NUMBER"},
		start:    []string{"//PRODUCT_START_TIME"},
		end:      []string{"//PRODUCT_STOP_TIME"},
		list:     "//EXT_POS_LIST",
	},
}
