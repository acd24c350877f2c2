package tcp

const loopbackName = "lo"
