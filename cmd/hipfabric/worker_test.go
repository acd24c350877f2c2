package main

func worker(string) int { return 1 }
