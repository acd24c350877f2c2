/* A library of twins waits as the software device asks for. */
void (*softhip_pause_hook)(void);
void softhip_pause(void);
void softhip_pause(void) { softhip_pause_hook(); }
