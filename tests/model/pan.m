#define rand	pan_rand
#define pthread_equal(a,b)	((a)==(b))
#if defined(HAS_CODE) && defined(VERBOSE)
	#ifdef BFS_PAR
		bfs_printf("Pr: %d Tr: %d\n", II, t->forw);
	#else
		cpu_printf("Pr: %d Tr: %d\n", II, t->forw);
	#endif
#endif
	switch (t->forw) {
	default: Uerror("bad forward move");
	case 0:	/* if without executable clauses */
		continue;
	case 1: /* generic 'goto' or 'skip' */
		IfNotBlocked
		_m = 3; goto P999;
	case 2: /* generic 'else' */
		IfNotBlocked
		if (trpt->o_pm&1) continue;
		_m = 3; goto P999;

		 /* PROC :init: */
	case 3: // STATE 1 - reading.pml:375 - [i = 0] (0:0:1 - 1)
		IfNotBlocked
		reached[3][1] = 1;
		(trpt+1)->bup.oval = ((int)now.i);
		now.i = 0;
#ifdef VAR_RANGES
		logval("i", ((int)now.i));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 4: // STATE 2 - reading.pml:377 - [((i<3))] (0:0:0 - 1)
		IfNotBlocked
		reached[3][2] = 1;
		if (!((((int)now.i)<3)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 5: // STATE 3 - reading.pml:377 - [(run writer(i))] (0:0:0 - 1)
		IfNotBlocked
		reached[3][3] = 1;
		if (!(addproc(II, 1, 0, ((int)now.i))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 6: // STATE 4 - reading.pml:377 - [i = (i+1)] (0:0:1 - 1)
		IfNotBlocked
		reached[3][4] = 1;
		(trpt+1)->bup.oval = ((int)now.i);
		now.i = (((int)now.i)+1);
#ifdef VAR_RANGES
		logval("i", ((int)now.i));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 7: // STATE 10 - reading.pml:380 - [i = 0] (0:0:1 - 1)
		IfNotBlocked
		reached[3][10] = 1;
		(trpt+1)->bup.oval = ((int)now.i);
		now.i = 0;
#ifdef VAR_RANGES
		logval("i", ((int)now.i));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 8: // STATE 12 - reading.pml:385 - [-end-] (0:0:0 - 1)
		IfNotBlocked
		reached[3][12] = 1;
		if (!delproc(1, II)) continue;
		_m = 3; goto P999; /* 0 */

		 /* PROC retention */
	case 9: // STATE 4 - reading.pml:359 - [D_STEP359]
		if (!(boq == -1 && (((((((((int)now.inserted)&((1<<1)|(1<<2)))==((1<<1)|(1<<2)))&& !(((now.running>>((int)now.row_xid[1]))&1)))&& !(((now.running>>((int)now.row_xid[2]))&1)))&&((((int)now.row_xid[1])<((int)now.log_from_max))&&(((int)now.row_xid[2])<((int)now.log_from_max))))&&((now.log_from_list&((1<<(((int)now.row_xid[1])+1))-1))==0))&&((now.log_from_list&((1<<(((int)now.row_xid[2])+1))-1))==0))))
			continue;

		reached[2][4] = 1;
		reached[2][t->st] = 1;
		reached[2][tt] = 1;

		if (TstOnly) return 1;

		sv_save();
		S_164_0: /* 2 */
		if (!((((((((((int)now.inserted)&((1<<1)|(1<<2)))==((1<<1)|(1<<2)))&& !(((now.running>>((int)now.row_xid[1]))&1)))&& !(((now.running>>((int)now.row_xid[2]))&1)))&&((((int)now.row_xid[1])<((int)now.log_from_max))&&(((int)now.row_xid[2])<((int)now.log_from_max))))&&((now.log_from_list&((1<<(((int)now.row_xid[1])+1))-1))==0))&&((now.log_from_list&((1<<(((int)now.row_xid[2])+1))-1))==0))))
			Uerror("block in d_step seq");
S_165_0: /* 2 */
		now.truncated = ((1<<1)|(1<<2));
#ifdef VAR_RANGES
		logval("truncated", ((int)now.truncated));
#endif
		;
S_166_0: /* 2 */
		now.retention_spares_the_unpublished = (((((int)now.committed)&((1<<1)|(1<<2)))& ~(((int)now.published)))==0);
#ifdef VAR_RANGES
		logval("retention_spares_the_unpublished", ((int)now.retention_spares_the_unpublished));
#endif
		;
		goto S_168_0;
S_168_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 10: // STATE 5 - reading.pml:370 - [assert(retention_spares_the_unpublished)] (0:0:0 - 1)
		IfNotBlocked
		reached[2][5] = 1;
		spin_assert(((int)now.retention_spares_the_unpublished), "retention_spares_the_unpublished", II, tt, t);
		_m = 3; goto P999; /* 0 */
	case 11: // STATE 6 - reading.pml:371 - [-end-] (0:0:0 - 1)
		IfNotBlocked
		reached[2][6] = 1;
		if (!delproc(1, II)) continue;
		_m = 3; goto P999; /* 0 */

		 /* PROC reader */
	case 12: // STATE 1 - reading.pml:277 - [(((to_max==0)&&((last_id>from_floor)||((from_list&~(running))!=0))))] (0:0:0 - 1)
		IfNotBlocked
		reached[1][1] = 1;
		if (!(((((int)now.to_max)==0)&&((((int)now.last_id)>((int)now.from_floor))||((now.from_list& ~(now.running))!=0)))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 13: // STATE 106 - reading.pml:341 - [(timeout)] (0:0:0 - 37)
		IfNotBlocked
		reached[1][106] = 1;
		if (!(((trpt->tau)&1)))
			continue;
		_m = 1; goto P999; /* 0 */
	case 14: // STATE 2 - reading.pml:286 - [to_floor = last_id] (0:0:1 - 1)
		IfNotBlocked
		reached[1][2] = 1;
		(trpt+1)->bup.oval = ((int)now.to_floor);
		now.to_floor = ((int)now.last_id);
#ifdef VAR_RANGES
		logval("to_floor", ((int)now.to_floor));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 15: // STATE 7 - reading.pml:69 - [D_STEP69]
		IfNotBlocked

		reached[1][7] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		if (TstOnly) return 1;

		sv_save();
		S_050_0: /* 2 */
		((P1 *)_this)->own_xid = ((int)now.next_xid);
#ifdef VAR_RANGES
		logval("reader:own_xid", ((int)((P1 *)_this)->own_xid));
#endif
		;
S_051_0: /* 2 */
		now.next_xid = (((int)now.next_xid)+1);
#ifdef VAR_RANGES
		logval("next_xid", ((int)now.next_xid));
#endif
		;
S_052_0: /* 2 */
		now.running = (now.running|(1<<((int)((P1 *)_this)->own_xid)));
#ifdef VAR_RANGES
		logval("running", now.running);
#endif
		;
S_053_0: /* 2 */
		spin_assert((((int)now.next_xid)<16), "(next_xid<16)", II, tt, t);
		goto S_060_0;
S_060_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 16: // STATE 13 - reading.pml:292 - [D_STEP292]
		IfNotBlocked

		reached[1][13] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		if (TstOnly) return 1;


		reached[1][13] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		sv_save();
		S_058_0: /* 2 */
S_056_0: /* 2 */
		now.running = (now.running& ~((1<<((int)((P1 *)_this)->own_xid))));
#ifdef VAR_RANGES
		logval("running", now.running);
#endif
		;
S_057_0: /* 2 */
		now.latest_completed = ( ((((int)((P1 *)_this)->own_xid)>((int)now.latest_completed))) ? (((int)((P1 *)_this)->own_xid)) : (((int)now.latest_completed)) );
#ifdef VAR_RANGES
		logval("latest_completed", ((int)now.latest_completed));
#endif
		;
		goto S_059_0;
S_059_0: /* 2 */
		((P1 *)_this)->own_xid = 0;
#ifdef VAR_RANGES
		logval("reader:own_xid", ((int)((P1 *)_this)->own_xid));
#endif
		;
		goto S_064_0;
S_064_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 17: // STATE 17 - reading.pml:298 - [D_STEP298]
		IfNotBlocked

		reached[1][17] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		if (TstOnly) return 1;


		reached[1][17] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		sv_save();
		S_063_0: /* 2 */
S_061_0: /* 2 */
		now.to_max = (((int)now.latest_completed)+1);
#ifdef VAR_RANGES
		logval("to_max", ((int)now.to_max));
#endif
		;
S_062_0: /* 2 */
		now.to_list = (now.running&((1<<((int)now.to_max))-1));
#ifdef VAR_RANGES
		logval("to_list", now.to_list);
#endif
		;
		goto S_065_0;
S_065_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 18: // STATE 18 - reading.pml:303 - [ceiling = last_id] (0:0:1 - 1)
		IfNotBlocked
		reached[1][18] = 1;
		(trpt+1)->bup.oval = ((int)now.ceiling);
		now.ceiling = ((int)now.last_id);
#ifdef VAR_RANGES
		logval("ceiling", ((int)now.ceiling));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 19: // STATE 29 - reading.pml:307 - [D_STEP307]
		if (!(boq == -1 && 1))
			continue;

		reached[1][29] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		if (TstOnly) return 1;

		sv_save();
		S_066_0: /* 2 */
		if (!(1))
			Uerror("block in d_step seq");
S_075_0: /* 2 */
S_067_0: /* 2 */
		now.log_from_max = ((int)now.from_max);
#ifdef VAR_RANGES
		logval("log_from_max", ((int)now.log_from_max));
#endif
		;
S_068_0: /* 2 */
		now.log_from_list = now.from_list;
#ifdef VAR_RANGES
		logval("log_from_list", now.log_from_list);
#endif
		;
S_069_0: /* 2 */
		now.log_from_floor = ((int)now.from_floor);
#ifdef VAR_RANGES
		logval("log_from_floor", ((int)now.log_from_floor));
#endif
		;
S_070_0: /* 2 */
		now.log_to_max = ((int)now.to_max);
#ifdef VAR_RANGES
		logval("log_to_max", ((int)now.log_to_max));
#endif
		;
S_071_0: /* 2 */
		now.log_to_list = now.to_list;
#ifdef VAR_RANGES
		logval("log_to_list", now.log_to_list);
#endif
		;
S_072_0: /* 2 */
		now.log_to_floor = ((int)now.to_floor);
#ifdef VAR_RANGES
		logval("log_to_floor", ((int)now.log_to_floor));
#endif
		;
S_073_0: /* 2 */
		now.log_ceiling = ((int)now.ceiling);
#ifdef VAR_RANGES
		logval("log_ceiling", ((int)now.log_ceiling));
#endif
		;
S_074_0: /* 2 */
		now.log_position = ((int)now.position);
#ifdef VAR_RANGES
		logval("log_position", ((int)now.log_position));
#endif
		;
		goto S_079_0;
S_079_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 20: // STATE 33 - reading.pml:310 - [(!((to_max==0)))] (0:0:0 - 1)
		IfNotBlocked
		reached[1][33] = 1;
		if (!( !((((int)now.to_max)==0))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 21: // STATE 55 - reading.pml:311 - [D_STEP311]
		IfNotBlocked

		reached[1][55] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		if (TstOnly) return 1;


		reached[1][55] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		sv_save();
		S_101_0: /* 2 */
S_081_0: /* 2 */
		now.found = 0;
#ifdef VAR_RANGES
		logval("found", ((int)now.found));
#endif
		;
S_082_0: /* 2 */
		now.i = (((int)now.position)+1);
#ifdef VAR_RANGES
		logval("i", ((int)now.i));
#endif
		;
S_089_0: /* 2 */
S_088_0: /* 2 */
S_083_0: /* 2 */
		if (!((((((int)now.i)<=4)&&(((int)now.i)<=((int)now.from_floor)))&&(((int)now.found)==0))))
			goto S_088_1;
S_084_0: /* 2 */
		now.found = ( ((((((int)now.i)<=((int)now.from_floor))&&(((((int)now.committed)>>((int)now.i))&1)&& !(((((int)now.truncated)>>((int)now.i))&1))))&&(((((int)now.row_xid[ Index(((int)now.i), 5) ])<((int)now.from_max))&&((now.from_list>>((int)now.row_xid[ Index(((int)now.i), 5) ]))&1))&&((((int)now.row_xid[ Index(((int)now.i), 5) ])<((int)now.to_max))&& !(((now.to_list>>((int)now.row_xid[ Index(((int)now.i), 5) ]))&1)))))) ? (((int)now.i)) : (0) );
#ifdef VAR_RANGES
		logval("found", ((int)now.found));
#endif
		;
S_085_0: /* 2 */
		now.i = (((int)now.i)+1);
#ifdef VAR_RANGES
		logval("i", ((int)now.i));
#endif
		;
		goto S_089_0; /* ';' */
S_088_1: /* 3 */
S_086_0: /* 2 */
		/* else */;
S_087_0: /* 2 */
		goto S_091_0;	/* 'goto' */
S_088_2: /* 3 */
		Uerror("blocking sel in d_step (nr.0, near line 190)");
S_090_0: /* 2 */
		goto S_091_0;	/* 'break' */
S_091_0: /* 2 */
		now.i = ( ((((int)now.position)>((int)now.from_floor))) ? ((((int)now.position)+1)) : ((((int)now.from_floor)+1)) );
#ifdef VAR_RANGES
		logval("i", ((int)now.i));
#endif
		;
S_098_0: /* 2 */
S_097_0: /* 2 */
S_092_0: /* 2 */
		if (!(((((int)now.i)<=4)&&(((int)now.found)==0))))
			goto S_097_1;
S_093_0: /* 2 */
		now.found = ( ((((((((int)now.i)>((int)now.from_floor))&&(((int)now.i)<=((int)now.ceiling)))&&(((((int)now.committed)>>((int)now.i))&1)&& !(((((int)now.truncated)>>((int)now.i))&1))))&&((((int)now.row_xid[ Index(((int)now.i), 5) ])<((int)now.to_max))&& !(((now.to_list>>((int)now.row_xid[ Index(((int)now.i), 5) ]))&1))))&& !(((((int)now.row_xid[ Index(((int)now.i), 5) ])<((int)now.from_max))&& !(((now.from_list>>((int)now.row_xid[ Index(((int)now.i), 5) ]))&1)))))) ? (((int)now.i)) : (0) );
#ifdef VAR_RANGES
		logval("found", ((int)now.found));
#endif
		;
S_094_0: /* 2 */
		now.i = (((int)now.i)+1);
#ifdef VAR_RANGES
		logval("i", ((int)now.i));
#endif
		;
		goto S_098_0; /* ';' */
S_097_1: /* 3 */
S_095_0: /* 2 */
		/* else */;
S_096_0: /* 2 */
		goto S_099_0;	/* 'goto' */
S_097_2: /* 3 */
		Uerror("blocking sel in d_step (nr.1, near line 195)");
S_099_0: /* 2 */
		goto S_100_0;	/* 'break' */
S_100_0: /* 2 */
		now.i = 0;
#ifdef VAR_RANGES
		logval("i", ((int)now.i));
#endif
		;
		goto S_121_0;
S_121_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 22: // STATE 56 - reading.pml:313 - [((found!=0))] (0:0:0 - 1)
		IfNotBlocked
		reached[1][56] = 1;
		if (!((((int)now.found)!=0)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 23: // STATE 63 - reading.pml:314 - [D_STEP314]
		IfNotBlocked

		reached[1][63] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		if (TstOnly) return 1;


		reached[1][63] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		sv_save();
		S_107_0: /* 2 */
S_104_0: /* 2 */
		now.order_per_key_holds = (((((int)now.published)>>((int)now.found))&1)||(((((int)now.published)&( (((((int)now.key_b)>>((int)now.found))&1)) ? (((int)now.key_b)) : ((255& ~(((int)now.key_b)))) ))& ~(((1<<((int)now.found))-1)))==0));
#ifdef VAR_RANGES
		logval("order_per_key_holds", ((int)now.order_per_key_holds));
#endif
		;
S_105_0: /* 2 */
		now.only_committed_is_published = ((((int)now.committed)>>((int)now.found))&1);
#ifdef VAR_RANGES
		logval("only_committed_is_published", ((int)now.only_committed_is_published));
#endif
		;
S_106_0: /* 2 */
		now.published = (((int)now.published)|(1<<((int)now.found)));
#ifdef VAR_RANGES
		logval("published", ((int)now.published));
#endif
		;
		goto S_108_0;
S_108_0: /* 2 */
		now.position = ((int)now.found);
#ifdef VAR_RANGES
		logval("position", ((int)now.position));
#endif
		;
S_109_0: /* 2 */
		now.found = 0;
#ifdef VAR_RANGES
		logval("found", ((int)now.found));
#endif
		;
		goto S_122_0;
S_122_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 24: // STATE 64 - reading.pml:322 - [((found==0))] (0:0:0 - 1)
		IfNotBlocked
		reached[1][64] = 1;
		if (!((((int)now.found)==0)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 25: // STATE 73 - reading.pml:324 - [D_STEP324]
		IfNotBlocked

		reached[1][73] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		if (TstOnly) return 1;

		sv_save();
		S_112_0: /* 2 */
		now.from_max = ((int)now.to_max);
#ifdef VAR_RANGES
		logval("from_max", ((int)now.from_max));
#endif
		;
S_113_0: /* 2 */
		now.from_list = now.to_list;
#ifdef VAR_RANGES
		logval("from_list", now.from_list);
#endif
		;
S_114_0: /* 2 */
		now.from_floor = ((int)now.to_floor);
#ifdef VAR_RANGES
		logval("from_floor", ((int)now.from_floor));
#endif
		;
S_115_0: /* 2 */
		now.position = 0;
#ifdef VAR_RANGES
		logval("position", ((int)now.position));
#endif
		;
S_116_0: /* 2 */
		now.to_max = 0;
#ifdef VAR_RANGES
		logval("to_max", ((int)now.to_max));
#endif
		;
S_117_0: /* 2 */
		now.to_list = 0;
#ifdef VAR_RANGES
		logval("to_list", now.to_list);
#endif
		;
S_118_0: /* 2 */
		now.to_floor = 0;
#ifdef VAR_RANGES
		logval("to_floor", ((int)now.to_floor));
#endif
		;
S_119_0: /* 2 */
		now.ceiling = 0;
#ifdef VAR_RANGES
		logval("ceiling", ((int)now.ceiling));
#endif
		;
		goto S_122_0; /* ';' */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 26: // STATE 76 - reading.pml:334 - [assert(order_per_key_holds)] (0:0:0 - 3)
		IfNotBlocked
		reached[1][76] = 1;
		spin_assert(((int)now.order_per_key_holds), "order_per_key_holds", II, tt, t);
		_m = 3; goto P999; /* 0 */
	case 27: // STATE 77 - reading.pml:335 - [assert(only_committed_is_published)] (0:0:0 - 1)
		IfNotBlocked
		reached[1][77] = 1;
		spin_assert(((int)now.only_committed_is_published), "only_committed_is_published", II, tt, t);
		_m = 3; goto P999; /* 0 */
	case 28: // STATE 88 - reading.pml:337 - [D_STEP337]
		if (!(boq == -1 && 1))
			continue;

		reached[1][88] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		if (TstOnly) return 1;

		sv_save();
		S_125_0: /* 2 */
		if (!(1))
			Uerror("block in d_step seq");
S_134_0: /* 2 */
S_126_0: /* 2 */
		now.log_from_max = ((int)now.from_max);
#ifdef VAR_RANGES
		logval("log_from_max", ((int)now.log_from_max));
#endif
		;
S_127_0: /* 2 */
		now.log_from_list = now.from_list;
#ifdef VAR_RANGES
		logval("log_from_list", now.log_from_list);
#endif
		;
S_128_0: /* 2 */
		now.log_from_floor = ((int)now.from_floor);
#ifdef VAR_RANGES
		logval("log_from_floor", ((int)now.log_from_floor));
#endif
		;
S_129_0: /* 2 */
		now.log_to_max = ((int)now.to_max);
#ifdef VAR_RANGES
		logval("log_to_max", ((int)now.log_to_max));
#endif
		;
S_130_0: /* 2 */
		now.log_to_list = now.to_list;
#ifdef VAR_RANGES
		logval("log_to_list", now.log_to_list);
#endif
		;
S_131_0: /* 2 */
		now.log_to_floor = ((int)now.to_floor);
#ifdef VAR_RANGES
		logval("log_to_floor", ((int)now.log_to_floor));
#endif
		;
S_132_0: /* 2 */
		now.log_ceiling = ((int)now.ceiling);
#ifdef VAR_RANGES
		logval("log_ceiling", ((int)now.log_ceiling));
#endif
		;
S_133_0: /* 2 */
		now.log_position = ((int)now.position);
#ifdef VAR_RANGES
		logval("log_position", ((int)now.log_position));
#endif
		;
		goto S_138_0;
S_138_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 29: // STATE 105 - reading.pml:340 - [D_STEP340]
		if (!(boq == -1 && (((int)now.crashes_left)>0)))
			continue;

		reached[1][105] = 1;
		reached[1][t->st] = 1;
		reached[1][tt] = 1;

		if (TstOnly) return 1;

		sv_save();
		S_139_0: /* 2 */
		if (!((((int)now.crashes_left)>0)))
			Uerror("block in d_step seq");
S_151_0: /* 2 */
S_140_0: /* 2 */
		if (!(1))
			Uerror("block in d_step seq");
S_141_0: /* 2 */
		now.crashes_left = (((int)now.crashes_left)-1);
#ifdef VAR_RANGES
		logval("crashes_left", ((int)now.crashes_left));
#endif
		;
S_142_0: /* 2 */
		now.from_max = ((int)now.log_from_max);
#ifdef VAR_RANGES
		logval("from_max", ((int)now.from_max));
#endif
		;
S_143_0: /* 2 */
		now.from_list = now.log_from_list;
#ifdef VAR_RANGES
		logval("from_list", now.from_list);
#endif
		;
S_144_0: /* 2 */
		now.from_floor = ((int)now.log_from_floor);
#ifdef VAR_RANGES
		logval("from_floor", ((int)now.from_floor));
#endif
		;
S_145_0: /* 2 */
		now.to_max = ((int)now.log_to_max);
#ifdef VAR_RANGES
		logval("to_max", ((int)now.to_max));
#endif
		;
S_146_0: /* 2 */
		now.to_list = now.log_to_list;
#ifdef VAR_RANGES
		logval("to_list", now.to_list);
#endif
		;
S_147_0: /* 2 */
		now.to_floor = ((int)now.log_to_floor);
#ifdef VAR_RANGES
		logval("to_floor", ((int)now.to_floor));
#endif
		;
S_148_0: /* 2 */
		now.ceiling = ((int)now.log_ceiling);
#ifdef VAR_RANGES
		logval("ceiling", ((int)now.ceiling));
#endif
		;
S_149_0: /* 2 */
		now.position = ((int)now.log_position);
#ifdef VAR_RANGES
		logval("position", ((int)now.position));
#endif
		;
S_150_0: /* 2 */
		now.found = 0;
#ifdef VAR_RANGES
		logval("found", ((int)now.found));
#endif
		;
		goto S_155_0;
S_155_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 30: // STATE 112 - reading.pml:343 - [nothing_is_lost = ((committed&~((published|truncated)))==0)] (0:0:1 - 3)
		IfNotBlocked
		reached[1][112] = 1;
		(trpt+1)->bup.oval = ((int)now.nothing_is_lost);
		now.nothing_is_lost = ((((int)now.committed)& ~((((int)now.published)|((int)now.truncated))))==0);
#ifdef VAR_RANGES
		logval("nothing_is_lost", ((int)now.nothing_is_lost));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 31: // STATE 113 - reading.pml:344 - [nothing_gets_stuck = (writers_left==0)] (0:0:1 - 1)
		IfNotBlocked
		reached[1][113] = 1;
		(trpt+1)->bup.oval = ((int)now.nothing_gets_stuck);
		now.nothing_gets_stuck = (((int)now.writers_left)==0);
#ifdef VAR_RANGES
		logval("nothing_gets_stuck", ((int)now.nothing_gets_stuck));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 32: // STATE 114 - reading.pml:345 - [assert(nothing_is_lost)] (0:0:0 - 1)
		IfNotBlocked
		reached[1][114] = 1;
		spin_assert(((int)now.nothing_is_lost), "nothing_is_lost", II, tt, t);
		_m = 3; goto P999; /* 0 */
	case 33: // STATE 115 - reading.pml:346 - [assert(nothing_gets_stuck)] (0:0:0 - 1)
		IfNotBlocked
		reached[1][115] = 1;
		spin_assert(((int)now.nothing_gets_stuck), "nothing_gets_stuck", II, tt, t);
		_m = 3; goto P999; /* 0 */
	case 34: // STATE 116 - reading.pml:347 - [-end-] (0:0:0 - 1)
		IfNotBlocked
		reached[1][116] = 1;
		if (!delproc(1, II)) continue;
		_m = 3; goto P999; /* 0 */

		 /* PROC writer */
	case 35: // STATE 5 - reading.pml:69 - [D_STEP69]
		IfNotBlocked

		reached[0][5] = 1;
		reached[0][t->st] = 1;
		reached[0][tt] = 1;

		if (TstOnly) return 1;

		sv_save();
		S_000_0: /* 2 */
		((P0 *)_this)->xid = ((int)now.next_xid);
#ifdef VAR_RANGES
		logval("writer:xid", ((int)((P0 *)_this)->xid));
#endif
		;
S_001_0: /* 2 */
		now.next_xid = (((int)now.next_xid)+1);
#ifdef VAR_RANGES
		logval("next_xid", ((int)now.next_xid));
#endif
		;
S_002_0: /* 2 */
		now.running = (now.running|(1<<((int)((P0 *)_this)->xid)));
#ifdef VAR_RANGES
		logval("running", now.running);
#endif
		;
S_003_0: /* 2 */
		spin_assert((((int)now.next_xid)<16), "(next_xid<16)", II, tt, t);
		goto S_008_0;
S_008_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 36: // STATE 7 - reading.pml:119 - [((lock_of[( ((w==2)) ? (1) : (0) )]==255))] (16:0:1 - 1)
		IfNotBlocked
		reached[0][7] = 1;
		if (!((((int)now.lock_of[ Index(( ((((int)((P0 *)_this)->w)==2)) ? (1) : (0) ), 2) ])==255)))
			continue;
		/* merge: lock_of[( ((w==2)) ? (1) : (0) )] = w(0, 8, 16) */
		reached[0][8] = 1;
		(trpt+1)->bup.oval = ((int)now.lock_of[ Index(( ((((int)((P0 *)_this)->w)==2)) ? (1) : (0) ), 2) ]);
		now.lock_of[ Index(( ((((P0 *)_this)->w==2)) ? (1) : (0) ), 2) ] = ((int)((P0 *)_this)->w);
#ifdef VAR_RANGES
		logval("lock_of[( ((writer:w==2)) ? (1) : (0) )]", ((int)now.lock_of[ Index(( ((((int)((P0 *)_this)->w)==2)) ? (1) : (0) ), 2) ]));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 37: // STATE 15 - reading.pml:91 - [D_STEP91]
		IfNotBlocked

		reached[0][15] = 1;
		reached[0][t->st] = 1;
		reached[0][tt] = 1;

		if (TstOnly) return 1;

		sv_save();
		S_009_0: /* 2 */
		now.last_id = (((int)now.last_id)+1);
#ifdef VAR_RANGES
		logval("last_id", ((int)now.last_id));
#endif
		;
S_010_0: /* 2 */
		now.row_xid[ Index(now.last_id, 5) ] = ((int)((P0 *)_this)->xid);
#ifdef VAR_RANGES
		logval("row_xid[last_id]", ((int)now.row_xid[ Index(((int)now.last_id), 5) ]));
#endif
		;
S_011_0: /* 2 */
		now.inserted = (((int)now.inserted)|(1<<((int)now.last_id)));
#ifdef VAR_RANGES
		logval("inserted", ((int)now.inserted));
#endif
		;
S_012_0: /* 2 */
		((P0 *)_this)->mine = (((int)((P0 *)_this)->mine)|(1<<((int)now.last_id)));
#ifdef VAR_RANGES
		logval("writer:mine", ((int)((P0 *)_this)->mine));
#endif
		;
S_013_0: /* 2 */
		now.key_b = ( ((( ((((int)((P0 *)_this)->w)==2)) ? (1) : (0) )==1)) ? ((((int)now.key_b)|(1<<((int)now.last_id)))) : (((int)now.key_b)) );
#ifdef VAR_RANGES
		logval("key_b", ((int)now.key_b));
#endif
		;
		goto S_025_0;
S_025_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 38: // STATE 17 - reading.pml:122 - [((w==0))] (0:0:0 - 1)
		IfNotBlocked
		reached[0][17] = 1;
		if (!((((int)((P0 *)_this)->w)==0)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 39: // STATE 23 - reading.pml:91 - [D_STEP91]
		IfNotBlocked

		reached[0][23] = 1;
		reached[0][t->st] = 1;
		reached[0][tt] = 1;

		if (TstOnly) return 1;

		sv_save();
		S_017_0: /* 2 */
		now.last_id = (((int)now.last_id)+1);
#ifdef VAR_RANGES
		logval("last_id", ((int)now.last_id));
#endif
		;
S_018_0: /* 2 */
		now.row_xid[ Index(now.last_id, 5) ] = ((int)((P0 *)_this)->xid);
#ifdef VAR_RANGES
		logval("row_xid[last_id]", ((int)now.row_xid[ Index(((int)now.last_id), 5) ]));
#endif
		;
S_019_0: /* 2 */
		now.inserted = (((int)now.inserted)|(1<<((int)now.last_id)));
#ifdef VAR_RANGES
		logval("inserted", ((int)now.inserted));
#endif
		;
S_020_0: /* 2 */
		((P0 *)_this)->mine = (((int)((P0 *)_this)->mine)|(1<<((int)now.last_id)));
#ifdef VAR_RANGES
		logval("writer:mine", ((int)((P0 *)_this)->mine));
#endif
		;
S_021_0: /* 2 */
		now.key_b = ( ((1==1)) ? ((((int)now.key_b)|(1<<((int)now.last_id)))) : (((int)now.key_b)) );
#ifdef VAR_RANGES
		logval("key_b", ((int)now.key_b));
#endif
		;
		goto S_026_0;
S_026_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 40: // STATE 36 - reading.pml:129 - [D_STEP129]
		IfNotBlocked

		reached[0][36] = 1;
		reached[0][t->st] = 1;
		reached[0][tt] = 1;

		if (TstOnly) return 1;

		sv_save();
		S_027_0: /* 2 */
		now.committed = (((int)now.committed)|((int)((P0 *)_this)->mine));
#ifdef VAR_RANGES
		logval("committed", ((int)now.committed));
#endif
		;
S_030_0: /* 2 */
S_028_0: /* 2 */
		now.running = (now.running& ~((1<<((int)((P0 *)_this)->xid))));
#ifdef VAR_RANGES
		logval("running", now.running);
#endif
		;
S_029_0: /* 2 */
		now.latest_completed = ( ((((int)((P0 *)_this)->xid)>((int)now.latest_completed))) ? (((int)((P0 *)_this)->xid)) : (((int)now.latest_completed)) );
#ifdef VAR_RANGES
		logval("latest_completed", ((int)now.latest_completed));
#endif
		;
		goto S_031_0;
S_031_0: /* 2 */
		now.lock_of[ Index(( ((((P0 *)_this)->w==2)) ? (1) : (0) ), 2) ] = ( ((((int)now.lock_of[ Index(( ((((int)((P0 *)_this)->w)==2)) ? (1) : (0) ), 2) ])==((int)((P0 *)_this)->w))) ? (255) : (((int)now.lock_of[ Index(( ((((int)((P0 *)_this)->w)==2)) ? (1) : (0) ), 2) ])) );
#ifdef VAR_RANGES
		logval("lock_of[( ((writer:w==2)) ? (1) : (0) )]", ((int)now.lock_of[ Index(( ((((int)((P0 *)_this)->w)==2)) ? (1) : (0) ), 2) ]));
#endif
		;
S_032_0: /* 2 */
		((P0 *)_this)->xid = 0;
#ifdef VAR_RANGES
		logval("writer:xid", ((int)((P0 *)_this)->xid));
#endif
		;
S_033_0: /* 2 */
		((P0 *)_this)->mine = 0;
#ifdef VAR_RANGES
		logval("writer:mine", ((int)((P0 *)_this)->mine));
#endif
		;
S_034_0: /* 2 */
		now.writers_left = (((int)now.writers_left)-1);
#ifdef VAR_RANGES
		logval("writers_left", ((int)now.writers_left));
#endif
		;
		goto S_046_0;
S_046_0: /* 1 */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 41: // STATE 45 - reading.pml:135 - [D_STEP135]
		if (!(boq == -1 && 1))
			continue;

		reached[0][45] = 1;
		reached[0][t->st] = 1;
		reached[0][tt] = 1;

		if (TstOnly) return 1;

		sv_save();
		S_036_0: /* 2 */
		if (!(1))
			Uerror("block in d_step seq");
S_039_0: /* 2 */
S_037_0: /* 2 */
		now.running = (now.running& ~((1<<((int)((P0 *)_this)->xid))));
#ifdef VAR_RANGES
		logval("running", now.running);
#endif
		;
S_038_0: /* 2 */
		now.latest_completed = ( ((((int)((P0 *)_this)->xid)>((int)now.latest_completed))) ? (((int)((P0 *)_this)->xid)) : (((int)now.latest_completed)) );
#ifdef VAR_RANGES
		logval("latest_completed", ((int)now.latest_completed));
#endif
		;
		goto S_040_0;
S_040_0: /* 2 */
		now.lock_of[ Index(( ((((P0 *)_this)->w==2)) ? (1) : (0) ), 2) ] = ( ((((int)now.lock_of[ Index(( ((((int)((P0 *)_this)->w)==2)) ? (1) : (0) ), 2) ])==((int)((P0 *)_this)->w))) ? (255) : (((int)now.lock_of[ Index(( ((((int)((P0 *)_this)->w)==2)) ? (1) : (0) ), 2) ])) );
#ifdef VAR_RANGES
		logval("lock_of[( ((writer:w==2)) ? (1) : (0) )]", ((int)now.lock_of[ Index(( ((((int)((P0 *)_this)->w)==2)) ? (1) : (0) ), 2) ]));
#endif
		;
S_041_0: /* 2 */
		((P0 *)_this)->xid = 0;
#ifdef VAR_RANGES
		logval("writer:xid", ((int)((P0 *)_this)->xid));
#endif
		;
S_042_0: /* 2 */
		((P0 *)_this)->mine = 0;
#ifdef VAR_RANGES
		logval("writer:mine", ((int)((P0 *)_this)->mine));
#endif
		;
S_043_0: /* 2 */
		now.writers_left = (((int)now.writers_left)-1);
#ifdef VAR_RANGES
		logval("writers_left", ((int)now.writers_left));
#endif
		;
		goto S_046_0; /* ';' */

#if defined(C_States) && (HAS_TRACK==1)
		c_update((uchar *) &(now.c_state[0]));
#endif
		_m = 3; goto P999;

	case 42: // STATE 48 - reading.pml:142 - [-end-] (0:0:0 - 3)
		IfNotBlocked
		reached[0][48] = 1;
		if (!delproc(1, II)) continue;
		_m = 3; goto P999; /* 0 */
	case  _T5:	/* np_ */
		if (!((!(trpt->o_pm&4) && !(trpt->tau&128))))
			continue;
		/* else fall through */
	case  _T2:	/* true */
		_m = 3; goto P999;
#undef rand
	}

