package tcp

const loopbackName = "lo0"
