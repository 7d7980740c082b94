#!/usr/bin/env bash
# PID 1 of the node's own mount, network, PID, UTS and IPC namespaces: network, then the programs, each started again
# if it ends. Killing this process ends everything that it started, containers too.
# Usage: node.sh BIN STATE (started by local/cluster)
set -u
B=$1 S=$2 L=$2/log K=$2/pki
hostname local
mount -t tmpfs tmpfs /run && mkdir -p /run/lock
ip link set lo up
ip link add node0 type bridge && ip addr add 10.88.0.1/32 dev node0 && ip link set node0 up
ip route add default dev node0
sysctl -qw net.ipv4.ip_forward=1
sysctl -qw net.bridge.bridge-nf-call-iptables=1 2>/dev/null # pod to pod passes the firewall too
export XTABLES_LOCKFILE=/run/lock/xtables

# start NAME CMD…
start() {
	local n=$1
	shift
	(
		while :; do
			"$@" >> "$L/$n.log" 2>&1 < /dev/null
			echo "ended: $?" >> "$L/$n.log"
			sleep 1
		done
	) &
}

cat > "$S/containerd.toml" <<T
version = 2
root = "$S/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$S/cni"
T
cat > "$S/cni/10-bridge.conflist" <<T
{"cniVersion": "0.4.0", "name": "local", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "10.244.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
T
echo "nameserver 10.96.0.10" > "$S/resolv.conf"
cat > "$S/kubelet.yaml" <<T
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $K/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $K/kubelet.crt
tlsPrivateKeyFile: $K/kubelet.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
resolvConf: $S/resolv.conf
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
maxPods: 500
serializeImagePulls: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%}
localStorageCapacityIsolation: false
T
cat > "$S/kube-proxy.yaml" <<T
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: $K/proxy.conf}
hostnameOverride: local
clusterCIDR: 10.244.0.0/16
conntrack: {maxPerCore: 0, min: 0}
T

# A laptop's cluster may forget its last second when the machine loses power: no fsync.
start etcd "$B/etcd" --name local --data-dir "$S/etcd" --unsafe-no-fsync --quota-backend-bytes=8589934592 \
	--listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
	--listen-peer-urls http://127.0.0.1:2380 --auto-compaction-mode=periodic --auto-compaction-retention=5m
start kube-apiserver "$B/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --secure-port=6443 --advertise-address=10.88.0.1 \
	--tls-cert-file="$K/apiserver.crt" --tls-private-key-file="$K/apiserver.key" --client-ca-file="$K/ca.crt" \
	--kubelet-client-certificate="$K/apiserver-kubelet.crt" --kubelet-client-key="$K/apiserver-kubelet.key" \
	--kubelet-certificate-authority="$K/ca.crt" --service-account-issuer=https://kubernetes.default.svc \
	--service-account-key-file="$K/sa.pub" --service-account-signing-key-file="$K/sa.key" \
	--service-cluster-ip-range=10.96.0.0/16 --authorization-mode=Node,RBAC \
	--enable-admission-plugins=NodeRestriction --allow-privileged=true
start containerd containerd --config "$S/containerd.toml"
start kubelet "$B/kubelet" --config="$S/kubelet.yaml" --kubeconfig="$K/kubelet.conf" --hostname-override=local \
	--node-ip=10.88.0.1 --root-dir="$S/kubelet"
start kube-controller-manager "$B/kube-controller-manager" --kubeconfig="$K/kcm.conf" \
	--use-service-account-credentials=true --service-account-private-key-file="$K/sa.key" --root-ca-file="$K/ca.crt" \
	--leader-elect=false --bind-address=127.0.0.1 --kube-api-qps=200 --kube-api-burst=400 \
	--concurrent-replicaset-syncs=20
start kube-scheduler "$B/kube-scheduler" --kubeconfig="$K/scheduler.conf" --leader-elect=false \
	--bind-address=127.0.0.1 --kube-api-qps=200 --kube-api-burst=400
start kube-proxy "$B/kube-proxy" --config="$S/kube-proxy.yaml"
start kube-router "$B/kube-router" --run-router=false --run-firewall=true --run-service-proxy=false \
	--kubeconfig="$K/admin.conf" --hostname-override=local --service-cluster-ip-range=10.96.0.0/16

cat > "$S/helper-pod.yaml" <<T
apiVersion: v1
kind: Pod
metadata: {name: helper-pod}
spec:
  containers: [{name: helper-pod, image: "localhost/busybox:1", imagePullPolicy: IfNotPresent}]
T
echo "{\"nodePathMap\":[{\"node\":\"DEFAULT_PATH_FOR_NON_LISTED_NODES\",\"paths\":[\"$S/volumes\"]}]}" > "$S/local-path.json"
start local-path-provisioner "$B/local-path-provisioner" start --config "$S/local-path.json" --kubeconfig "$K/admin.conf" \
	--helper-image localhost/busybox:1 --helper-pod-file "$S/helper-pod.yaml"
trap 'exit 0' TERM
while :; do sleep 3600 & wait $!; done
