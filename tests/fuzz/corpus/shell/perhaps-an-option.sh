bin-B${A_SERVICE_PORT}eil
echo $B