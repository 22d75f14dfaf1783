#separator \x09
#set_separator	,
#empty_field	(empty)
#unset_field	-
#path	http
#open	(redacted)
#fields	ts	uid	id.orig_h	id.orig_p	id.resp_h	id.resp_p	method	host	uri	version	user_agent	status_code	status_msg	resp_mime_types	response_time	ttlb	state
#types	time	string	addr	port	addr	port	string	string	string	string	string	count	string	vector[string]	interval	interval	string
1795227738.900456	CJqgWn1	10.80.0.11	27200	10.80.0.1	80	GET	www.example.test	/crash	1.1	Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1	500	Internal Server Error	text/plain	0.001100	-	complete
1795227738.902477	CJqgWn1	10.80.0.11	27200	10.80.0.1	80	GET	media.example.test	/admin	1.1	Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1	403	Forbidden	text/plain	0.000042	-	complete
1795227738.902626	CJqgWn1	10.80.0.11	27200	10.80.0.1	80	GET	api.example.test	/slow/report?part=2	1.1	Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1	200	OK	text/html	0.000058	-	complete
1795227738.902745	Cx8NPb3	10.80.0.12	38774	10.80.0.1	80	GET	media.example.test	/pages/p0.html?session=12000	1.1	curl/7.88.1	200	OK	text/html	0.000056	-	complete
1795227738.903088	CJqgWn1	10.80.0.11	27200	10.80.0.1	80	GET	shop.example.test	/pages/p3.html	1.1	Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1	200	OK	text/html	0.000066	-	complete
1795227738.903336	Cx8NPb3	10.80.0.12	38774	10.80.0.1	80	GET	api.example.test	/pages/p1.html?session=12001	1.1	curl/7.88.1	200	OK	text/html	0.000060	-	complete
1795227738.903568	CJqgWn1	10.80.0.11	27200	10.80.0.1	80	GET	www.example.test	/pages/p4.html	1.1	Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1	200	OK	text/html	0.000067	-	complete
1795227738.903804	Cx8NPb3	10.80.0.12	38774	10.80.0.1	80	GET	shop.example.test	/pages/p4.html?session=12002	1.1	curl/7.88.1	200	OK	text/html	0.000053	-	complete
