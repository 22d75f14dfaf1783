#separator \x09
#set_separator	,
#empty_field	(empty)
#unset_field	-
#path	http
#open	(redacted)
#fields	ts	uid	id.orig_h	id.orig_p	id.resp_h	id.resp_p	trans_depth	method	host	uri	referrer	version	user_agent	origin	request_body_len	response_body_len	status_code	status_msg	info_code	info_msg	tags	username	password	proxied	orig_fuids	orig_filenames	orig_mime_types	resp_fuids	resp_filenames	resp_mime_types	response_time	ttlb	state	request_bytes	response_bytes	content_type	interim_responses	retransmissions	vlan	community_id
#types	time	string	addr	port	addr	port	count	string	string	string	string	string	string	string	count	count	count	string	count	string	set[enum]	string	string	set[string]	vector[string]	vector[string]	vector[string]	vector[string]	vector[string]	vector[string]	interval	interval	string	count	count	string	count	count	int	string
1795227738.900456	C8pegWaXPLWr	10.80.0.11	27200	10.80.0.1	80	-	GET	www.example.test	/crash	-	1.1	Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1	-	-	-	500	Internal Server Error	-	-	-	-	-	-	-	-	-	-	-	text/plain	0.001100	-	complete	161	182	text/plain	0	0	-	1:fPj75OvGNs5bG+ij/I79QV6+P+g=
1795227738.902477	C8pegWaXPLWr	10.80.0.11	27200	10.80.0.1	80	-	GET	media.example.test	/admin	-	1.1	Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1	-	-	-	403	Forbidden	-	-	-	-	-	-	-	-	-	-	-	text/plain	0.000042	-	complete	163	165	text/plain	0	0	-	1:fPj75OvGNs5bG+ij/I79QV6+P+g=
1795227738.902626	C8pegWaXPLWr	10.80.0.11	27200	10.80.0.1	80	-	GET	api.example.test	/slow/report?part=2	-	1.1	Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1	-	-	-	200	OK	-	-	-	-	-	-	-	-	-	-	-	text/html	0.000058	-	complete	174	668	text/html	0	0	-	1:fPj75OvGNs5bG+ij/I79QV6+P+g=
1795227738.902745	CGFFPjUgqJ69	10.80.0.12	38774	10.80.0.1	80	-	GET	media.example.test	/pages/p0.html?session=12000	-	1.1	curl/7.88.1	-	-	-	200	OK	-	-	-	-	-	-	-	-	-	-	-	text/html	0.000056	-	complete	109	437	text/html	0	0	-	1:uHX5g03FP9o1SLY+HELtI6W78TI=
1795227738.903088	C8pegWaXPLWr	10.80.0.11	27200	10.80.0.1	80	-	GET	shop.example.test	/pages/p3.html	-	1.1	Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1	-	-	-	200	OK	-	-	-	-	-	-	-	-	-	-	-	text/html	0.000066	-	complete	170	668	text/html	0	0	-	1:fPj75OvGNs5bG+ij/I79QV6+P+g=
1795227738.903336	CGFFPjUgqJ69	10.80.0.12	38774	10.80.0.1	80	-	GET	api.example.test	/pages/p1.html?session=12001	-	1.1	curl/7.88.1	-	-	-	200	OK	-	-	-	-	-	-	-	-	-	-	-	text/html	0.000060	-	complete	107	498	text/html	0	0	-	1:uHX5g03FP9o1SLY+HELtI6W78TI=
1795227738.903568	C8pegWaXPLWr	10.80.0.11	27200	10.80.0.1	80	-	GET	www.example.test	/pages/p4.html	-	1.1	Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1	-	-	-	200	OK	-	-	-	-	-	-	-	-	-	-	-	text/html	0.000067	-	complete	169	798	text/html	0	0	-	1:fPj75OvGNs5bG+ij/I79QV6+P+g=
1795227738.903804	CGFFPjUgqJ69	10.80.0.12	38774	10.80.0.1	80	-	GET	shop.example.test	/pages/p4.html?session=12002	-	1.1	curl/7.88.1	-	-	-	200	OK	-	-	-	-	-	-	-	-	-	-	-	text/html	0.000053	-	complete	108	798	text/html	0	0	-	1:uHX5g03FP9o1SLY+HELtI6W78TI=
