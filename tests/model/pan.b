	switch (t->back) {
	default: Uerror("bad return move");
	case  0: goto R999; /* nothing to undo */

		 /* PROC :init: */

	case 3: // STATE 1
		;
		now.i = trpt->bup.oval;
		;
		goto R999;
;
		;
		
	case 5: // STATE 3
		;
		;
		delproc(0, now._nr_pr-1);
		;
		goto R999;

	case 6: // STATE 4
		;
		now.i = trpt->bup.oval;
		;
		goto R999;

	case 7: // STATE 10
		;
		now.i = trpt->bup.oval;
		;
		goto R999;

	case 8: // STATE 12
		;
		p_restor(II);
		;
		;
		goto R999;

		 /* PROC retention */
	case 9: // STATE 4
		sv_restor();
		goto R999;
;
		;
		
	case 11: // STATE 6
		;
		p_restor(II);
		;
		;
		goto R999;

		 /* PROC reader */
;
		;
		;
		;
		
	case 14: // STATE 2
		;
		now.to_floor = trpt->bup.oval;
		;
		goto R999;
	case 15: // STATE 7
		sv_restor();
		goto R999;
	case 16: // STATE 13
		sv_restor();
		goto R999;
	case 17: // STATE 17
		sv_restor();
		goto R999;

	case 18: // STATE 18
		;
		now.ceiling = trpt->bup.oval;
		;
		goto R999;
	case 19: // STATE 29
		sv_restor();
		goto R999;
;
		;
			case 21: // STATE 55
		sv_restor();
		goto R999;
;
		;
			case 23: // STATE 63
		sv_restor();
		goto R999;
;
		;
			case 25: // STATE 73
		sv_restor();
		goto R999;
;
		;
		;
		;
			case 28: // STATE 88
		sv_restor();
		goto R999;
	case 29: // STATE 105
		sv_restor();
		goto R999;

	case 30: // STATE 112
		;
		now.nothing_is_lost = trpt->bup.oval;
		;
		goto R999;

	case 31: // STATE 113
		;
		now.nothing_gets_stuck = trpt->bup.oval;
		;
		goto R999;
;
		;
		;
		;
		
	case 34: // STATE 116
		;
		p_restor(II);
		;
		;
		goto R999;

		 /* PROC writer */
	case 35: // STATE 5
		sv_restor();
		goto R999;

	case 36: // STATE 8
		;
		now.lock_of[ Index(( ((((P0 *)_this)->w==2)) ? (1) : (0) ), 2) ] = trpt->bup.oval;
		;
		goto R999;
	case 37: // STATE 15
		sv_restor();
		goto R999;
;
		;
			case 39: // STATE 23
		sv_restor();
		goto R999;
	case 40: // STATE 36
		sv_restor();
		goto R999;
	case 41: // STATE 45
		sv_restor();
		goto R999;

	case 42: // STATE 48
		;
		p_restor(II);
		;
		;
		goto R999;
	}

