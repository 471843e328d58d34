cat <<EOF
$A_SERVICE_HOST
EOF
cat <<'E'
$B
E
cat <<-	X
	$B
	X
