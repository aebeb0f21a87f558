// Package workdo owns the REST calls of WorkDo and of Stanford's workflow server: Query,
// Initiate and Update, reified queues, and what their clients read, in XML.
//
// It must not decide: it asks and acts through the desk, in the name of who calls.
//
// The routes, below workflow/, each also below workflow/dor/:
//
//	GET    workflow_queue                            ?waiting=WF:STEP&completed=WF:STEP&lane-id=&limit=&count-only=
//	                                                 ?workflow=WF&completed=STEP; ?error=WF:STEP
//	GET    workflow_queue/lane_ids                   ?step=WF:STEP
//	GET    workflow_queue/all_queued                 ?hours-ago=&limit=
//	GET    workflows/WF/STEP, queues/NAME            a queue with a name; ?lane-id=&limit=
//	GET    objects/OBJECT/workflows[/WF[/STEP]]
//	GET    objects/OBJECT/lifecycle
//	PUT    objects/OBJECT/workflows/WF               Initiate; POST too; ?lane-id=&version= as the item's are
//	PUT    objects/OBJECT/workflows/WF/STEP          Update; ?current-status=
//	POST   objects/OBJECT/workflows/WF/skip-all  ?note=
//	GET    workflow_templates[/WF]                   JSON, as Stanford's server has it
//	DELETE objects/OBJECT/workflows/WF               405
//
// Other parameters are refused. WF:STEP may be written dor:WF:STEP. A step's status in XML is waiting, completed, skipped,
// error, or, of a step in progress, the word that its robot told, else started. A Calls never
// changes; no lock guards it.
package workdo
